"""The manifest of a backup: its files with their sizes and digests, and facts about its site."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = 1


@dataclass
class Manifest:
    """The contents of a backup. Times are in ISO 8601, sizes in bytes, digests SHA-256."""

    site: str
    made_at: str
    database: str  # sqlite or postgresql
    migrations: dict[str, list[str]]  # the last ones of each application
    erasure_key: str  # of the log of erasures, in hex
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)  # named by rows, but not in the storage
    erased: int = 0  # names in the log of erasures at that moment
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Return the total size of all files in bytes."""
        return sum(size for size, _ in self.files.values())


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the manifest in its stored form."""
    return json.dumps(asdict(manifest), indent=1).encode()


def read_manifest(text: bytes) -> Manifest:
    """Parse a stored manifest. Raises ValueError for another format or an unsafe path."""
    values: dict[str, Any] = json.loads(text)
    if values.get("format") != FORMAT:
        raise ValueError(f"its format is {values.get('format')!r}, not {FORMAT}")
    if unsafe_name := next(filter(_escapes_folder, values["files"]), None):
        raise ValueError(f"it contains the unsafe path {unsafe_name!r}")
    for name, (size, digest) in values["files"].items():
        values["files"][name] = (size, digest)  # JSON has lists for tuples
    return Manifest(**values)


def _escapes_folder(name: str) -> bool:
    """Return whether a file with this name might be written outside its folder."""
    return not {"", ".", ".."}.isdisjoint(name.split("/"))
