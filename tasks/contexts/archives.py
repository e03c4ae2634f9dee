"""Archives of pictures and recordings with a table that names them. No database.

Nothing is unpacked: a member is read only if a row names it, and only up to the size limit.
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

from core.files.decoding import DECODERS, MAX_BYTES, TOO_MANY_BYTES_MESSAGE, BadMedia
from core.text.words import compose
from tasks.config.components import Component
from tasks.contexts.columns import Fields, Matching
from tasks.contexts.files import MediaFiles, Summary, summarise_file
from tasks.line_files import BadRow, FileError

MAX_ARCHIVE_BYTES = 200 * 2**20
MAX_MEMBERS = 20_000
MAX_STORED_BYTES = 2 * 2**30
"""The maximum size of all pictures and recordings of an archive in their stored form."""
UTF8_NAME_FLAG = 0x800
"""The ZIP flag of a file whose name is in UTF-8. Some programs write UTF-8 without it."""
TABLE_ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson")
DAMAGED_MESSAGE = "is damaged or protected by a password; make the archive again"


class Archive(MediaFiles):
    """The files of an archive. Decoded files are written to `folder`, named by their digest."""

    def __init__(
        self, path: Path, folder: Path, stored_values: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """Open the archive. Raises FileError."""
        super().__init__(stored_values)
        self._folder, self._size = folder, 0
        self._values_by_name: dict[tuple[str, str], Mapping[str, Any]] = {}
        try:
            self._zip = ZipFile(path)
        except (BadZipFile, RuntimeError, ValueError, OSError):
            raise FileError("This isn't a readable archive. Create a .zip file.") from None
        if len(self._zip.infolist()) > MAX_MEMBERS:
            raise FileError(f"The archive contains more than {MAX_MEMBERS:,} files. Split it.")

    @cached_property
    def table(self) -> ZipInfo:
        """Return the only table in the archive. Raises FileError if there is none or several."""
        tables = []
        for info in self._zip.infolist():
            is_hidden = posixpath.basename(info.filename).startswith(".")  # what macOS adds
            if info.filename.lower().endswith(TABLE_ENDINGS) and not is_hidden:
                tables.append(info)
        if len(tables) != 1:
            names = ", ".join(info.filename for info in tables[:5]) or "none"
            raise FileError(
                f"Put one .csv, .tsv or .jsonl file into the archive. It contains {names}."
            )
        return tables[0]

    @cached_property
    def _members(self) -> dict[str, ZipInfo]:
        """Return the archive's files by name in NFC, because macOS stores names in NFD."""
        members: dict[str, ZipInfo] = {}
        for info in self._zip.infolist():
            for name in _iter_names(info):
                members.setdefault(compose(name), info)
        return members

    def read_table(self, max_bytes: int) -> bytes:
        """Return the content of the table. Raises FileError.

        max_bytes: the maximum size of the table.
        """
        try:
            return self._read_member(self.table, max_bytes)
        except BadMedia:
            raise FileError(f"{self.table.filename} is larger than 20 MB. Split it.") from None
        except BadRow as error:
            raise FileError(f"{self.table.filename} {error}.") from None

    def find_named_value(self, component: Component, name: str) -> Mapping[str, Any]:
        """Return the stored value for a file that a row names. Raises BadRow.

        The file is decoded and written to the folder when it is first named. name: the path of the
        file relative to the table.
        """
        # By type too: a file may be a picture in one field and no recording in another.
        key = (name, component.type)
        if key not in self._values_by_name:
            self._values_by_name[key] = self._decode_media(component, name)
        return self._values_by_name[key]

    def _decode_media(self, component: Component, name: str) -> dict[str, Any]:
        # Normalised as text and looked up among the members. No path of the disk is made of it.
        member_name = posixpath.normpath(
            posixpath.join(posixpath.dirname(self.table.filename), name)
        )
        member = self._members.get(compose(member_name))
        if member is None:
            raise BadRow(f"the archive doesn't contain the file {member_name:.200}")
        try:
            decoded_media = DECODERS[component.kind.element](self._read_member(member, MAX_BYTES))
        except BadMedia as error:
            raise BadRow(f"{member_name:.200}: {error}") from None
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
        self.decoded_values[digest] = value
        return value

    def _read_member(self, member: ZipInfo, max_bytes: int) -> bytes:
        """Return the content of a member of at most `max_bytes` bytes, whatever size it declares.

        Raises BadMedia if it is longer, BadRow if it is damaged.
        """
        try:
            # Read one byte more than allowed: the size that an archive declares may be wrong.
            with self._zip.open(member) as file:
                data = file.read(max_bytes + 1)
        except (BadZipFile, RuntimeError, EOFError, OSError, zlib.error):
            raise BadRow(DAMAGED_MESSAGE) from None
        if len(data) > max_bytes:
            raise BadMedia(TOO_MANY_BYTES_MESSAGE)
        return data


def _iter_names(member: ZipInfo) -> Iterator[str]:
    """Yield a file's decoded name and, if the archive does not declare UTF-8, the name as UTF-8."""
    yield member.filename
    if not member.flag_bits & UTF8_NAME_FLAG:
        # Python reads such names as CP437, but many programs write UTF-8 without declaring it.
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

    stored_digests: digests of the contexts that exist already. media: the values of stored files,
    by digest. max_bytes: the maximum size of the table. matching: see `read_rows`. Raises
    FileError.
    """
    archive = Archive(path, folder, media)
    lines = archive.read_table(max_bytes)
    summary = summarise_file(
        lines, archive.table.filename, config, stored_digests, archive, matching
    )
    named_digests = set()
    for row in summary.rows:
        for value in archive.find_values(row.values):
            named_digests.add(value["digest"])
    summary.files = {
        digest: archive.decoded_values[digest]
        for digest in named_digests & archive.decoded_values.keys()
    }
    return summary
