"""Archives of pictures and recordings with a table that names them; nothing knows the database.

Nothing is unpacked: a member is read only where a row names it, and no further than it may be long.
"""

import hashlib
import posixpath
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

from core.files.decoding import DECODERS, MAX_BYTES, TOO_MANY_BYTES, BadMedia
from core.text.words import composed
from tasks.config.components import Component
from tasks.contexts.columns import Fields, Matching
from tasks.contexts.files import MediaFiles, Summary, summarise_file
from tasks.line_files import BadRow, FileError

MAX_ARCHIVE_BYTES = 200 * 2**20
MAX_MEMBERS = 20_000
MAX_STORED_BYTES = 2 * 2**30
"""Bytes of all pictures and recordings of an archive as they are stored."""
UTF8_NAME_FLAG = 0x800
"""The flag of an archive's file whose name is in UTF-8; some programs write UTF-8 without it."""
TABLE_ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson")
DAMAGED_MESSAGE = "is damaged or protected by a password; make the archive again"


class Archive(MediaFiles):
    """The files of an archive. Decoded files are written to `folder` under their digest."""

    def __init__(self, path: Path, folder: Path, stored: Mapping[str, Mapping[str, Any]]) -> None:
        """Open the archive. Raises FileError."""
        super().__init__(stored)
        self._folder, self._size = folder, 0
        self._known: dict[tuple[str, str], Mapping[str, Any]] = {}
        try:
            self._zip = ZipFile(path)
        except (BadZipFile, RuntimeError, ValueError, OSError):
            raise FileError("This is no archive that can be read. Make a .zip file.") from None
        if len(self._zip.infolist()) > MAX_MEMBERS:
            raise FileError(f"The archive holds more than {MAX_MEMBERS:,} files. Split it.")

    @cached_property
    def table(self) -> ZipInfo:
        """Return the one file that lists the others. Raises FileError."""
        tables = []
        for info in self._zip.infolist():
            is_hidden = posixpath.basename(info.filename).startswith(".")  # what macOS adds
            if info.filename.lower().endswith(TABLE_ENDINGS) and not is_hidden:
                tables.append(info)
        if len(tables) != 1:
            names = ", ".join(info.filename for info in tables[:5]) or "none"
            raise FileError(
                f"Put one .csv, .tsv or .jsonl file into the archive; it holds {names}."
            )
        return tables[0]

    @cached_property
    def _members(self) -> dict[str, ZipInfo]:
        """Map names in NFC to files, because macOS stores names in NFD and tables use NFC."""
        members: dict[str, ZipInfo] = {}
        for info in self._zip.infolist():
            for name in _iter_names(info):
                members.setdefault(composed(name), info)
        return members

    def lines(self, max_bytes: int) -> bytes:
        """Return the content of the table. Raises FileError.

        max_bytes: maximum size of the table.
        """
        try:
            return self._read_member(self.table, max_bytes)
        except BadMedia:
            raise FileError(f"{self.table.filename} is larger than 20 MB. Split it.") from None
        except BadRow as error:
            raise FileError(f"{self.table.filename} {error}.") from None

    def named(self, component: Component, name: str) -> Mapping[str, Any]:
        """Return the stored value for a file that a row names. Raises BadRow.

        name: the path of the file relative to the table.
        """
        # By type too: a file may be a picture in one field and no recording in another.
        key = (name, component.type)
        if key not in self._known:
            self._known[key] = self._decode_media(component, name)
        return self._known[key]

    def _decode_media(self, component: Component, name: str) -> dict[str, Any]:
        # Normalised as text and looked up among the members. No path of the disk is made of it.
        place = posixpath.normpath(posixpath.join(posixpath.dirname(self.table.filename), name))
        member = self._members.get(composed(place))
        if member is None:
            raise BadRow(f"the archive holds no file {place:.200}")
        try:
            decoded_media = DECODERS[component.kind.element](self._read_member(member, MAX_BYTES))
        except BadMedia as error:
            raise BadRow(f"{place:.200}: {error}") from None
        digest = hashlib.sha256(decoded_media.data).hexdigest()
        file = self._folder / digest
        # Rows often share a file, which is stored and counted once.
        if not file.exists():
            self._size += len(decoded_media.data)
            if self._size > MAX_STORED_BYTES:
                raise BadRow("the archive's files take more than 2 GiB; split it")
            file.write_bytes(decoded_media.data)
        value = {
            "digest": digest,
            "mime": decoded_media.mime,
            "bytes": len(decoded_media.data),
            **decoded_media.about,
        }
        self.decoded[digest] = value
        return value

    def _read_member(self, member: ZipInfo, max_bytes: int) -> bytes:
        """Read a member of at most `max_bytes` bytes, whatever size it declares.

        Raises BadMedia if it is longer, BadRow if it is damaged.
        """
        try:
            # Read one byte more than allowed: the size that an archive declares may be wrong.
            with self._zip.open(member) as file:
                data = file.read(max_bytes + 1)
        except (BadZipFile, RuntimeError, EOFError, OSError, zlib.error):
            raise BadRow(DAMAGED_MESSAGE) from None
        if len(data) > max_bytes:
            raise BadMedia(TOO_MANY_BYTES)
        return data


def _iter_names(member: ZipInfo) -> Iterator[str]:
    """Yield a file's name as decoded and, if the archive does not declare UTF-8, as UTF-8."""
    yield member.filename
    if not member.flag_bits & UTF8_NAME_FLAG:
        with suppress(UnicodeError):
            yield member.filename.encode("cp437").decode()


def summarise_archive(
    path: Path,
    folder: Path,
    config: Fields,
    stored_digests: Collection[str],
    media: Mapping[str, Mapping[str, Any]],
    max_bytes: int,
    matching: Matching | None = None,
) -> Summary:
    """Return the summary of the table in an archive, and store the files it names in `folder`.

    max_bytes: maximum size of the table. Raises FileError.
    """
    archive = Archive(path, folder, media)
    lines = archive.lines(max_bytes)
    summary = summarise_file(
        lines, archive.table.filename, config, stored_digests, archive, matching
    )
    named_digests = set()
    for row in summary.rows:
        for value in archive.values_in(row.values):
            named_digests.add(value["digest"])
    summary.files = {
        digest: archive.decoded[digest] for digest in named_digests & archive.decoded.keys()
    }
    return summary
