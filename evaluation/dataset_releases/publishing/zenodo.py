"""A client of Zenodo's deposit API. https://developers.zenodo.org describes it.

A record is a draft until it is published, so that nobody sees half of it. Zenodo reserves its DOI
with the draft. A published record never changes; another version of it is a draft of its own.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import httpx

API_PATH = "/api/deposit/depositions"
TIMEOUT_SECONDS = 60
BLOCK_BYTES = 2**20
STATUS_MESSAGES = {
    401: "Zenodo doesn't know the token. Check ZENODO_TOKEN and ZENODO_URL.",
    403: "The token may not do this. It needs the scopes deposit:write and deposit:actions.",
    404: "Zenodo has no such draft. Was it deleted there?",
    410: "Zenodo has no such draft any more. It was deleted there.",
    413: "The file is too large for Zenodo.",
}


class ZenodoError(Exception):
    """Raised when Zenodo refuses a request or does not answer. The message says what to do.

    status: the HTTP status with which Zenodo refused; None if there was no answer or no known one.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class UnknownOutcome(ZenodoError):
    """Raised when an error hides whether Zenodo has published a record."""


class StoredFile(NamedTuple):
    """A file of a draft. md5: the digest that Zenodo computes, in hex."""

    id: str
    name: str
    md5: str


class Draft(NamedTuple):
    """A record at Zenodo. bucket: the URL to which its files are uploaded."""

    id: str
    doi: str
    bucket: str
    url: str
    is_published: bool
    files: Mapping[str, StoredFile]


class Zenodo:
    """A connection to Zenodo. url: of the site, without the path of the API."""

    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        self._client = httpx.Client(
            base_url=url.rstrip("/"),
            # In a header, because URLs are written to logs.
            headers={"Authorization": f"Bearer {token}"},
            timeout=TIMEOUT_SECONDS,
            transport=transport,
        )

    def create_draft(self) -> Draft:
        """Create an empty draft. Raises ZenodoError."""
        return _read_draft(self._send("POST", API_PATH, "create a draft", json={}))

    def create_new_version(self, record: str) -> Draft:
        """Create a draft for the next version of a published record, with its files.

        If there is such a draft already, Zenodo returns that one. Raises ZenodoError.
        """
        path = f"{API_PATH}/{record}/actions/newversion"
        answer = self._send("POST", path, "create a new version")
        # The response describes the earlier version, with a link to the draft.
        link = str(answer.get("links", {}).get("latest_draft", ""))
        new_record = link.rstrip("/").rpartition("/")[2]
        if not new_record:
            raise ZenodoError("Zenodo named no draft of the new version. Try again later.")
        return self.read_draft(new_record)

    def read_draft(self, record: str) -> Draft:
        """Return a draft, or the record that it has become. Raises ZenodoError."""
        return _read_draft(self._send("GET", f"{API_PATH}/{record}", "read the draft"))

    def upload(self, draft: Draft, name: str, file: IO[bytes]) -> None:
        """Upload a file, and compare the digest that Zenodo computes. Raises ZenodoError."""
        digest = hashlib.md5(usedforsecurity=False)

        def read_blocks() -> Any:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
                yield block

        answer = self._send(
            "PUT", f"{draft.bucket}/{name}", f"upload {name}", content=read_blocks()
        )
        stored_digest = str(answer.get("checksum", "")).removeprefix("md5:")
        if stored_digest != digest.hexdigest():
            raise ZenodoError(f"{name} arrived damaged at Zenodo. Run the command again.")

    def delete_file(self, draft: Draft, file: StoredFile) -> None:
        """Delete a file of a draft. Raises ZenodoError."""
        path = f"{API_PATH}/{draft.id}/files/{file.id}"
        self._send("DELETE", path, f"delete {file.name} of the former version")

    def describe(self, draft: Draft, metadata: Mapping[str, Any]) -> None:
        """Replace the metadata of a draft. Raises ZenodoError."""
        body = {"metadata": metadata}
        self._send("PUT", f"{API_PATH}/{draft.id}", "store the metadata", json=body)

    def publish(self, draft: Draft) -> Draft:
        """Publish a draft for good; return the record. Raises ZenodoError."""
        path = f"{API_PATH}/{draft.id}/actions/publish"
        return _read_draft(self._send("POST", path, "publish the record"))

    def _send(self, method: str, path: str, purpose: str, **body: Any) -> dict[str, Any]:
        """Return the JSON of a response. purpose: what the request is for, in error messages."""
        try:
            response = self._client.request(method, path, **body)
        except httpx.HTTPError as error:
            raise ZenodoError(f"Zenodo did not answer when asked to {purpose}: {error}") from error
        if response.is_success:
            return _parse_object(response, purpose)
        message = STATUS_MESSAGES.get(response.status_code) or _describe_failure(response)
        text = f"Zenodo didn't {purpose} ({response.status_code}). {message}"
        raise ZenodoError(text, response.status_code)


def _parse_object(response: httpx.Response, purpose: str) -> dict[str, Any]:
    if response.status_code == httpx.codes.NO_CONTENT:
        return {}
    try:
        value = response.json()
    except ValueError:
        value = None
    if not isinstance(value, dict):
        # A proxy or a maintenance page may also answer with 200.
        raise ZenodoError(f"What Zenodo answered when asked to {purpose} is no JSON object.")
    return value


def _describe_failure(response: httpx.Response) -> str:
    """Return Zenodo's own message, with the field of each error."""
    try:
        answer = response.json()
    except ValueError:
        answer = {}
    if not isinstance(answer, dict):
        answer = {}
    parts = [str(answer.get("message") or "Try again later.")]
    for error in answer.get("errors") or ():
        if isinstance(error, dict):
            parts.append(f"{error.get('field', '')}: {error.get('message', '')}".strip(": "))
    # The command's own sentences follow, and Zenodo ends its message without a full stop.
    return " ".join(parts)[:500].rstrip(". ") + "."


def _read_draft(answer: Mapping[str, Any]) -> Draft:
    """Return the record that an answer describes. Raises ZenodoError if it describes none."""
    links = answer.get("links") or {}
    metadata = answer.get("metadata") or {}
    record = str(answer.get("id") or "")
    # A published record has its DOI, a draft the reserved one.
    doi = answer.get("doi") or metadata.get("doi") or ""
    doi = doi or (metadata.get("prereserve_doi") or {}).get("doi") or ""
    if not record or not doi:
        raise ZenodoError("Zenodo described no record with a DOI. Is ZENODO_URL the right address?")
    files = {}
    for file in answer.get("files") or ():
        name = str(file.get("filename") or "")
        # Old and new servers differ in whether the digest names its kind.
        md5 = str(file.get("checksum") or "").removeprefix("md5:")
        files[name] = StoredFile(str(file.get("id") or ""), name, md5)
    return Draft(
        id=record,
        doi=str(doi),
        bucket=str(links.get("bucket") or ""),
        url=str(links.get("record_html") or links.get("html") or ""),
        is_published=bool(answer.get("submitted")),
        files=files,
    )


def compute_md5(path: Path) -> str:
    """Return the digest by which Zenodo knows a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
