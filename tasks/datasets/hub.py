"""Read datasets of a hub through its HTTP interface: the listing, and files in pieces.

Calls use the guarded transport, without an access token. A redirect to a private address is
refused, and nobody can get data that only the operator may read.
"""

import io
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx

from tasks.datasets.files import Card, Splits, find_converted_splits, find_splits, parse_card
from tasks.line_files import FileError
from tasks.targets.endpoints.answers import expect_object, parse_strict_json
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED_TRANSPORT
from tasks.targets.endpoints.transport import RETRY_IDEMPOTENT, Headers, Reply

REQUEST_SECONDS = 30.0
MAX_REPLY_BYTES = 32 * 2**20
MAX_CARD_BYTES = 2**20
BLOCK_BYTES = 4 * 2**20
CONVERTED_BRANCH = "refs/convert/parquet"
"""The branch in which a hub keeps its own Parquet conversion of a dataset."""
ID_PATTERN = re.compile(r"(?!\.)[\w.-]{1,96}(?:/(?!\.)[\w.-]{1,96})?")
REVISION_PATTERN = re.compile(r"(?!\.)[\w./-]{1,200}")
COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")
HUB_HOSTS = ("huggingface.co", "hf.co", "www.huggingface.co")
CLOSED_MESSAGE = (
    "{what} doesn't exist, or is gated or private. This site reads only public datasets. "
    "If you have access, fetch it with `hf download {what} --repo-type dataset "
    "--local-dir FOLDER` and import FOLDER with --from datasets."
)
BLOBS_QUERY = "blobs=true"


class _MissingFromHub(FileError):
    """Raised if the hub does not have the dataset or file."""


@dataclass(frozen=True)
class Reference:
    """A reference to a dataset of a hub.

    Empty fields stand for the main branch, the only configuration and the only split.
    """

    name: str
    revision: str = ""
    config: str = ""
    split: str = ""


@dataclass(frozen=True)
class HubDataset:
    """A dataset of a hub, pinned to a commit.

    origin: the URL that identifies it. sizes: bytes by file name. endpoint: the hub's URL.
    """

    name: str
    commit: str
    origin: str
    sizes: dict[str, int]
    splits: Splits
    card: Card
    endpoint: str

    def open(self, name: str, pieces: "PieceCache") -> io.BufferedReader:
        """Open a file, which is downloaded in pieces while it is read. Reading raises FileError."""
        url = f"{self.endpoint}/datasets/{self.name}/resolve/{self.commit}/{quote(name)}"
        return io.BufferedReader(_HubFile(url, self.name, self.sizes[name], pieces), 2**16)


@dataclass(frozen=True)
class PieceCache:
    """A cache of downloaded file pieces.

    max_pieces: the maximum number of pieces; 0 for no limit.
    """

    folder: Path
    max_pieces: int = 0

    def get_folder(self, url: str) -> Path:
        """Return the folder for a file's pieces. Raises FileError if the cache is full."""
        # Counted on disk, since the pieces of several files share the limit.
        if self.max_pieces and sum(1 for _ in self.folder.glob("*/*")) >= self.max_pieces:
            limit = f"{self.max_pieces * BLOCK_BYTES >> 20} MB"
            raise FileError(
                f"The rows lie in more than {limit} of files. Ask for fewer, or have the operator "
                "import them by the command."
            )
        file_folder = self.folder / sha256(url.encode()).hexdigest()
        file_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return file_folder


class _HubFile(io.RawIOBase):
    """A file of a hub that is downloaded in pieces while it is read."""

    def __init__(self, url: str, description: str, size: int, pieces: PieceCache) -> None:
        self._url, self._description, self._size, self._pieces = url, description, size, pieces
        self._offset, self._block_number, self._block = 0, -1, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._size}[whence]
        self._offset = max(0, start + offset)
        return self._offset

    def tell(self) -> int:
        return self._offset

    def readinto(self, buffer: Any) -> int:
        if self._offset >= self._size:
            return 0
        number, offset = divmod(self._offset, BLOCK_BYTES)
        # The last piece stays in memory: readers go back and forth within it.
        if number != self._block_number:
            self._block_number, self._block = number, self._read_block(number)
        data = self._block[offset : offset + len(buffer)]
        buffer[: len(data)] = data
        self._offset += len(data)
        return len(data)

    def _read_block(self, number: int) -> bytes:
        block_file = self._pieces.get_folder(self._url) / str(number)
        first_byte, last_byte = (
            number * BLOCK_BYTES,
            min(self._size, (number + 1) * BLOCK_BYTES) - 1,
        )
        if block_file.exists():
            return block_file.read_bytes()
        # A range, so that the first rows of a large file cost little.
        headers = [(b"Range", f"bytes={first_byte}-{last_byte}".encode())]
        data = _fetch_reply(self._url, self._description, last_byte - first_byte + 1, headers).body
        if len(data) != last_byte - first_byte + 1:
            raise FileError("The hub sends another number of bytes than it tells. Try again.")
        # A name of its own, as another request may fetch the same piece.
        part_file = block_file.with_name(f"{number}.{secrets.token_hex(4)}.part")
        part_file.write_bytes(data)
        part_file.rename(block_file)
        return data


def parse_reference(text: str, endpoint: str) -> Reference:
    """Return the dataset that a name, such as org/name, or a URL of the hub refers to.

    Raises FileError.
    """
    text = text.strip()
    try:
        address = urlsplit(text if "://" in text else f"hf://datasets/{text}")
    except ValueError:
        raise FileError(f"{text!r:.100} is not an address. Copy it from the hub.") from None
    parts = []
    for step in address.path.split("/"):
        if step:
            parts.append(unquote(step))
    if address.scheme == "hf":
        parts = [unquote(address.netloc), *parts]
    elif address.scheme not in ("http", "https") or address.hostname not in (
        *HUB_HOSTS,
        urlsplit(endpoint).hostname,
    ):
        raise FileError(
            f"Only datasets of {endpoint} are read: give a name such as stanfordnlp/snli, or its "
            "address there. Save other files, and import them."
        )
    if parts[:1] != ["datasets"]:
        raise FileError("The address is of no dataset: it must have /datasets/ in it.")
    return _parse_path(parts[1:])


def _parse_path(path_parts: list[str]) -> Reference:
    """Return the dataset that the path after /datasets/ refers to. Raises FileError.

    path_parts: the name with its owner, followed by a view of the dataset, if any.
    """
    views = ("viewer", "tree", "blob", "resolve")
    view_index = next(
        (index for index, step in enumerate(path_parts) if index and step in views), len(path_parts)
    )
    # A name has at most two parts: the owner, which old datasets lack, and the dataset.
    name, view = "/".join(path_parts[:view_index][:2]), path_parts[view_index:]
    name, _, revision = name.partition("@")
    if not ID_PATTERN.fullmatch(name):
        raise FileError(f"{name!r:.100} isn't the name of a dataset, such as stanfordnlp/snli.")
    if view[:1] == ["viewer"]:
        config, split = [*view[1:3], "", ""][:2]
        return Reference(name, revision, config, split)
    return Reference(name, revision or (view[1] if len(view) > 1 else ""))


def find_dataset(reference: Reference, endpoint: str) -> HubDataset:
    """Return the dataset as the hub describes it, pinned to a commit. Raises FileError.

    If no file is readable, for example because the dataset has only a loading script, the files of
    the hub's own conversion are used. This conversion exists only for the main branch, so not if
    the reference names a revision.
    """
    # It becomes a part of an address.
    if reference.revision and not REVISION_PATTERN.fullmatch(reference.revision):
        raise FileError(f"{reference.revision!r:.100} isn't a revision. Use a branch or a commit.")
    answer = _fetch_listing(reference.name, reference.revision, endpoint)
    name, commit, sizes = answer
    resolve = f"{endpoint}/datasets/{name}/resolve/{commit}"
    card = Card({})
    # The beginning of a card has its front matter.
    if card_bytes := min(sizes.get("README.md", 0), MAX_CARD_BYTES):
        headers = [(b"Range", f"bytes=0-{card_bytes - 1}".encode())]
        text = _fetch_reply(f"{resolve}/README.md", name, MAX_CARD_BYTES, headers).body
        # A long card is cut off, perhaps in the middle of a letter.
        card = parse_card(text.decode("utf-8", "replace"))
    splits = find_splits(list(sizes), card)
    # The hub converts the main branch only.
    if not splits and not reference.revision:
        with suppress(_MissingFromHub):
            _, commit, sizes = _fetch_listing(name, CONVERTED_BRANCH, endpoint)
            splits = find_converted_splits(list(sizes))
    origin = f"{endpoint}/datasets/{name}/tree/{commit}"
    return HubDataset(name, commit, origin, sizes, splits, card, endpoint)


def _fetch_listing(name: str, revision: str, endpoint: str) -> tuple[str, str, dict[str, int]]:
    """Return the dataset's canonical name, its commit, and the size in bytes of each file.

    Raises FileError.
    """
    revision_path = ""
    if revision:
        # The slash is quoted too: a branch with slashes is one step of the path.
        revision_path = f"/revision/{quote(revision, safe='')}"
    reply = _fetch_reply(
        f"{endpoint}/api/datasets/{name}{revision_path}?{BLOBS_QUERY}", name, MAX_REPLY_BYTES
    )
    try:
        answer = expect_object(parse_strict_json(reply.body), "The answer")
    except EndpointError as error:
        raise FileError(f"The hub's answer cannot be read ({error}). Try again later.") from None
    dataset_id, commit = answer.get("id", name), answer.get("sha")
    if answer.get("gated") or answer.get("private"):
        raise FileError(CLOSED_MESSAGE.format(what=dataset_id))
    if not (isinstance(dataset_id, str) and ID_PATTERN.fullmatch(dataset_id)):
        raise FileError("The hub's answer names no dataset. Try again later.")
    if not (isinstance(commit, str) and COMMIT_PATTERN.fullmatch(commit)):
        raise FileError("The hub names no commit of this dataset, so it could change later.")
    siblings = answer.get("siblings")
    sizes = {}
    for sibling in siblings if isinstance(siblings, list) else []:
        name, size = sibling.get("rfilename"), sibling.get("size")
        # `isinstance` would take True and False for integers.
        if isinstance(name, str) and type(size) is int and size >= 0:
            sizes[name] = size
    return dataset_id, commit, sizes


def _fetch_reply(url: str, subject: str, max_bytes: int, headers: Headers = ()) -> Reply:
    """Return the hub's response if it is successful. Raises FileError.

    subject: the dataset's name, for messages. max_bytes: the maximum size of the response.
    """
    address = httpx.URL(url)
    try:
        reply = SHARED_TRANSPORT.request(
            "GET", address, seconds=REQUEST_SECONDS, max_bytes=max_bytes,
            allowed_hosts=(address.host,), secret=None, payload=None, retry=RETRY_IDEMPOTENT,
            headers=headers,
        )  # fmt: skip
    except EndpointError as error:
        message = str(error).replace("The target", "It")
        raise FileError(f"The hub cannot be read now. {message} Try again later.") from None
    if reply.status in (401, 403):
        raise FileError(CLOSED_MESSAGE.format(what=subject))
    if reply.status == 404:
        raise _MissingFromHub(f"The hub has no {subject} at this revision.")
    if not 200 <= reply.status < 300:
        raise FileError(f"The hub answers with status {reply.status}. Try again later.")
    return reply
