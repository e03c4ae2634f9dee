"""What the tools may use: the site, a key, and one folder of files."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynabench.client.client import AsyncDynabenchClient
from dynabench.client.errors import AuthenticationError

RETRIES = 2
"""Fewer than the client's default: an agent waits for the answer, and can call the tool again."""
BEARER = re.compile(r"Bearer ([\x21-\x7e]{1,200})", re.IGNORECASE)


class RequestClient(AsyncDynabenchClient):
    """A client that has the given key, or none. It never uses a stored one."""

    def _build_options(self, key: str | None) -> dict[str, Any]:
        """Return the options of an httpx client."""
        # The base class would fall back to the key of whoever runs this process.
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return super()._build_options(key) | {"headers": headers}


@dataclass(frozen=True)
class Access:
    """The site that tools use, whose key they use, and what files they can read.

    server: the site's URL. key: the key over stdio; None without one. is_shared: whether each
    request brings its own key, as over HTTP. folder: tools read files only there; None: nowhere.
    """

    server: str
    key: str | None = None
    is_shared: bool = False
    folder: Path | None = None

    def open_client(self, headers: Mapping[str, str] | None) -> RequestClient:
        """Return a client for a request with these HTTP headers. Raises AuthenticationError."""
        # A key that is lent would give everyone on the machine the rights of one person.
        key = read_bearer(headers or {}) if self.is_shared else self.key
        return RequestClient(key, self.server, retries=RETRIES, progress=False)

    def find_file(self, path: str) -> Path:
        """Return the file or folder at a path, relative to the folder that tools can read.

        Raises ValueError if it is elsewhere, FileNotFoundError if it does not exist.
        """
        if self.folder is None:
            raise ValueError(
                "This server reads no files. Start it with --folder DIR, or pass the text itself."
            )
        root = self.folder.resolve()
        # After links have been followed, so that none leads out of the folder.
        found = (root / path).resolve()
        # An agent that has read a hostile text may ask for any path.
        if not found.is_relative_to(root):
            raise ValueError(f"{path} is not in the folder {root}, which tools can read.")
        if not found.exists():
            raise FileNotFoundError(f"{path} does not exist in {root}.")
        return found

    @contextmanager
    def hold_text(self, text: str, path: str, name: str) -> Iterator[Path]:
        """Give the path of a file with this text, or of the named file in the tools' folder.

        name: of the file with the text, which is deleted afterwards. Raises ValueError unless
        exactly one of text and path is given.
        """
        if bool(text) == bool(path):
            raise ValueError("Give either the text or the path of a file.")
        if path:
            yield self.find_file(path)
            return
        # The client's methods read files. The folder is for this user only.
        with tempfile.TemporaryDirectory(prefix="dynabench-mcp-") as folder:
            file = Path(folder, name)
            file.write_text(text, encoding="utf-8")
            yield file


def read_bearer(headers: Mapping[str, str]) -> str | None:
    """Return the key in an Authorization header; None without the header.

    Raises AuthenticationError if the header is not understood.
    """
    header = headers.get("authorization")
    # Public data can be read without a key.
    if not header:
        return None
    if match := BEARER.fullmatch(header.strip()):
        return match.group(1)
    # Not passed on: it could be anything, such as a password.
    raise AuthenticationError(
        "Send the header `Authorization: Bearer KEY` with an API token.", code="token"
    )
