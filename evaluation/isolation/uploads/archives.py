"""Check archives that people submit before anything is unpacked, then unpack them safely.

Reads zip, tar, tar.gz and tar.xz, recognised by their first bytes. Every refusal names the member
and the rule. docs/threat-model.md lists what archives can do to a reader.
"""

import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Protocol

from core.files.damage import describe_damage
from core.text.words import gettext_noop
from evaluation.contract import GIB, MIB

BLOCK_BYTES = MIB
MAX_HEADER_BYTES = 64 * 1024  # bytes that tarfile reads at once
MAX_DIRECTORY_BYTES = 4 * MIB  # the table of a zip archive
MAX_XZ_MEMORY_BYTES = 128 * MIB
MIN_RATIO_BYTES = MIB  # below it, the ratio is not checked
MAX_NAME_BYTES, MAX_PART_BYTES = 1000, 255  # bytes
WINDOWS_NAME_PATTERN = re.compile(
    r'[<>:"|?*]|[. ]$|^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)',
    re.IGNORECASE,
)
REFUSED_TYPES = {
    tarfile.SYMTYPE: "a link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}
FORMAT_MAGIC = {
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"7z\xbc\xaf": "7z",
    b"Rar!": "rar",
}
READABLE_FORMATS = ("plain", "gzip", "xz")
DAMAGE_ERRORS = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,  # unknown features, and endless chains of headers
    ValueError,
    OverflowError,
)
Blocks = Iterator[bytes]


class ArchiveRefused(Exception):
    """Raised when an archive breaks a rule. The message names the member and the rule."""


@dataclass(frozen=True)
class ArchiveLimits:
    """The limits of an archive. ratio: the maximum ratio of unpacked to packed bytes."""

    members: int = 10_000
    bytes: int = 20 * GIB
    ratio: int = 100


@dataclass(frozen=True)
class Member:
    """A file or folder in an archive. size: as stated in the archive, in bytes."""

    name: str
    size: int
    is_folder: bool


class ByteSource(Protocol):
    """A source of bytes: a file or a request's body."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""


def check_archive(path: Path, limits: ArchiveLimits = ArchiveLimits()) -> list[Member]:
    """Return the members of an archive after checking all rules. Writes nothing.

    Raises ArchiveRefused.
    """
    return [member for member, _ in _check_members(path, limits)]


def unpack_archive(
    path: Path, target_folder: Path, limits: ArchiveLimits = ArchiveLimits()
) -> None:
    """Check the archive, then write its files (0644) and folders (0755) into `target_folder`.

    Raises ArchiveRefused before anything is written, unless only the contents show the damage.
    """
    check_archive(path, limits)  # completely, before the first byte is written
    for member, blocks in _check_members(path, limits):
        target = target_folder / member.name
        if member.is_folder:
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            _write_member(target, member, blocks)
    # Despite this process's umask, because the sandbox's user `nobody` reads them.
    for name, _, _ in os.walk(target_folder):
        Path(name).chmod(0o755)


def _write_member(target: Path, member: Member, blocks: Blocks) -> None:
    count = 0
    with target.open("xb") as file:  # x: never through a link or over another file
        os.fchmod(file.fileno(), 0o644)
        for block in blocks:
            count += len(block)
            file.write(block)
    if count != member.size:
        raise make_refusal(member.name, f"has {count} bytes and not the {member.size} it claims")


def make_refusal(name: str, rule: str) -> ArchiveRefused:
    """Return an exception for a member that breaks a rule. Escapes and shortens its name."""
    escaped_name = ascii(name)[1:-1]
    if len(escaped_name) > 120:
        escaped_name = f"{escaped_name[:119]}…"
    return ArchiveRefused(f"{escaped_name}: {rule}.")


def clean_member_name(name: str) -> str:
    """Return a member's name with single slashes; `.` stands for the archive's own folder.

    Raises ArchiveRefused.
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise make_refusal(name, "the name is not UTF-8") from None
    if rule := _find_name_rule(name, parts) or _find_portable_rule(parts, size):
        raise make_refusal(name, rule)
    return "/".join(parts) or "."


def _find_name_rule(name: str, parts: list[str]) -> str | None:
    """Return the path-traversal rule that a name violates, or None."""
    if "\0" in name:
        return "the name contains a NUL"
    if name.startswith("/") or re.match("[A-Za-z]:", name):
        return "the name is absolute; pack with names that begin at the model's folder"
    if "\\" in name:
        return "the name contains a backslash; use / between folders"
    if ".." in parts:
        return "the name leads out of the archive (..)"
    return None


def _find_portable_rule(parts: list[str], size: int) -> str | None:
    """Return the portability rule that a name violates, or None."""
    if not all(part.isprintable() for part in parts):
        return "the name contains a character that cannot be printed"
    if any(WINDOWS_NAME_PATTERN.search(part) for part in parts):
        return "Windows cannot keep a file of that name; choose another"
    if size > MAX_NAME_BYTES or any(len(part.encode()) > MAX_PART_BYTES for part in parts):
        return f"the name is too long ({MAX_PART_BYTES} bytes a part, {MAX_NAME_BYTES} in all)"
    return None


def _check_members(path: Path, limits: ArchiveLimits) -> Iterator[tuple[Member, Blocks]]:
    """Yield each member with its bytes, which must be read before the next member or not at all.

    Raises ArchiveRefused.
    """
    files: set[str] = set()
    folders: set[str] = set()
    total = number = 0
    for number, (raw_name, size, is_folder, blocks) in enumerate(_iterate_members(path, limits), 1):
        if number > limits.members:
            raise make_refusal(raw_name, f"there are more than {limits.members:,} members")
        total += size
        if total > limits.bytes:
            raise make_refusal(raw_name, f"with it there are more than {limits.bytes:,} bytes")
        name = clean_member_name(raw_name)
        if name == ".":  # the archive's own folder, which tar lists first
            if not is_folder:
                raise make_refusal(raw_name, "the name is empty")
            continue
        # Other systems may treat two names as one: macOS composes letters, Windows ignores case.
        key = unicodedata.normalize("NFC", name).casefold()
        parent_keys = {key[: match.start()] for match in re.finditer("/", key)}
        if key in files or (not is_folder and key in folders) or parent_keys & files:
            raise make_refusal(raw_name, "the same name is there twice (case does not count)")
        folders |= parent_keys
        if is_folder:
            folders.add(key)
        else:
            files.add(key)
        yield Member(name, size, is_folder), blocks
    if not files:
        raise ArchiveRefused(gettext_noop("The archive contains no files."))


RawMember = tuple[str, int, bool, Blocks]
"""A member of an archive: name, claimed size, whether it is a folder, bytes."""


def _iterate_members(path: Path, limits: ArchiveLimits) -> Iterator[RawMember]:
    """Yield each plain file and folder of an archive of any format. Raises ArchiveRefused."""
    with path.open("rb") as file:
        archive_format = detect_format(file)
        if archive_format == "zip":
            yield from _iterate_zip_members(path, limits)
            return
        if archive_format not in READABLE_FORMATS:
            raise ArchiveRefused(
                f"{archive_format} is not read here. Pack it as .zip, .tar or .tar.gz."
            )
        stream = open_decompressed(file, path.stat().st_size, limits)
        for info, blocks in iterate_tar_members(stream):
            if info.issparse() or not (info.isreg() or info.isdir()):
                kind = REFUSED_TYPES.get(info.type, "a special file")
                raise make_refusal(info.name, f"it is {kind}; pack plain files and folders only")
            yield info.name, info.size, info.isdir(), blocks


def detect_format(file: "BufferedReader[Any]") -> str:
    """Return the format that the first bytes show: zip, gzip, xz, plain, or an unsupported one."""
    start = file.peek(8)
    return next((name for magic, name in FORMAT_MAGIC.items() if start.startswith(magic)), "plain")


# --- zip


class BoundedZip(io.FileIO):
    """A file that refuses large reads, because zipfile reads an archive's directory at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to `size` bytes. Raises ArchiveRefused for more than MAX_DIRECTORY_BYTES."""
        # The archive states the size of its table, which zipfile would read at once.
        if size and size > MAX_DIRECTORY_BYTES:
            raise ArchiveRefused(gettext_noop("The archive has too many files. Pack fewer files."))
        return super().read(size) or b""


def _iterate_zip_members(path: Path, limits: ArchiveLimits) -> Iterator[RawMember]:
    packed_bytes = path.stat().st_size
    unpacked_bytes = 0
    try:
        with BoundedZip(path) as file, zipfile.ZipFile(file) as archive:  # type: ignore[arg-type]
            for info in archive.infolist():
                unpacked_bytes += info.file_size
                if rule := _find_zip_rule(info, unpacked_bytes, packed_bytes, limits):
                    raise make_refusal(info.orig_filename, rule)
                blocks = _iterate_zip_blocks(archive, info)
                name = info.orig_filename
                yield name, info.file_size, name.endswith("/"), blocks
    except DAMAGE_ERRORS as error:
        raise _make_damage_refusal(error) from None


def _find_zip_rule(
    info: zipfile.ZipInfo, unpacked_bytes: int, packed_bytes: int, limits: ArchiveLimits
) -> str | None:
    """Return the rule that a member of a zip archive violates, or None."""
    kind = stat.S_IFMT(info.external_attr >> 16)  # 0 from systems without such bits
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        kind_name = "a device, pipe or socket"
        if kind == stat.S_IFLNK:
            kind_name = "a link"
        return f"it is {kind_name}; pack plain files and folders only"
    if info.flag_bits & 0x1:
        return "it is encrypted; pack without a password"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "its compression is not read here; pack with ordinary zip compression"
    if not 0 <= info.header_offset < packed_bytes:
        return "it lies outside the archive; pack it again"
    if info.file_size > MIN_RATIO_BYTES and info.file_size > limits.ratio * info.compress_size:
        return f"it unfolds to more than {limits.ratio} times its size"
    if (
        unpacked_bytes > MIN_RATIO_BYTES and unpacked_bytes > limits.ratio * packed_bytes
    ):  # members may share their bytes
        return f"with it the archive unfolds to more than {limits.ratio} times its size"
    return None


def _iterate_zip_blocks(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Blocks:
    try:
        with archive.open(info) as source:
            while block := source.read(BLOCK_BYTES):
                yield block
    except DAMAGE_ERRORS as error:
        raise make_refusal(
            info.filename, f"damaged: {describe_damage(error)}. Pack it again"
        ) from None


# --- tar


class TarStream:
    """A forward-only file with the methods that `tarfile` needs.

    Raises ArchiveRefused if it unpacks to more than `max_bytes` or has a large header. `tarfile`
    would read the whole header into memory.
    """

    def __init__(self, source: ByteSource, max_bytes: int | None) -> None:
        self._source, self._max_bytes = source, max_bytes
        self._position = 0
        self.last_header = b""  # the last header read
        self.member = "the first member"  # the current member

    def tell(self) -> int:
        """Return the number of bytes read so far."""
        return self._position

    def read(self, size: int, /) -> bytes:
        """Read a header of `size` bytes, or fewer at the end."""
        if not 0 <= size <= MAX_HEADER_BYTES:
            raise make_refusal(self.member, "a header after it is too large")
        self.last_header = self.read_bytes(size)
        return self.last_header

    def read_bytes(self, size: int) -> bytes:
        """Read `size` bytes, or fewer at the end."""
        blocks, remaining_bytes = [], size
        try:
            while remaining_bytes and (
                block := self._source.read(min(remaining_bytes, BLOCK_BYTES))
            ):
                blocks.append(block)
                remaining_bytes -= len(block)
        except DAMAGE_ERRORS as error:
            raise _make_damage_refusal(error) from None
        self._position += size - remaining_bytes
        # Counted while unpacking, because an archive's own sizes cannot be trusted.
        if self._max_bytes and self._position > self._max_bytes:
            raise make_refusal(self.member, "at it the archive unfolds to far more than its size")
        return b"".join(blocks)

    def seek(self, offset: int, /) -> None:
        """Move forward to the offset."""
        if offset < self._position:
            raise make_refusal(self.member, "its size leads backwards")
        while self._position < offset and self.read_bytes(
            min(BLOCK_BYTES, offset - self._position)
        ):
            pass


class _XzReader:
    """A reader for an xz file, which refuses files that need more than MAX_XZ_MEMORY_BYTES."""

    def __init__(self, file: ByteSource) -> None:
        self._file = file
        self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_XZ_MEMORY_BYTES)

    def read(self, size: int, /) -> bytes:
        """Return up to `size` decompressed bytes. Raises ArchiveRefused."""
        data = b""
        while not data and not self._xz.eof:
            packed_data = b""
            if self._xz.needs_input:
                packed_data = self._file.read(BLOCK_BYTES)
                if not packed_data:
                    raise EOFError
            try:
                data = self._xz.decompress(packed_data, size)
            except lzma.LZMAError as error:
                if "emory" not in str(error):  # nothing else distinguishes them
                    raise
                raise ArchiveRefused(
                    gettext_noop(
                        "Unpacking this archive takes too much memory. Pack it as .zip or .tar.gz."
                    )
                ) from None
        return data


def open_decompressed(
    file: "BufferedReader[Any]", packed_bytes: int, limits: ArchiveLimits
) -> TarStream:
    """Return a stream of the decompressed bytes of a file. Raises ArchiveRefused.

    packed_bytes: the size of the compressed file.
    """
    openers: Mapping[str, Callable[[BufferedReader[Any]], ByteSource]] = {
        "gzip": lambda file: gzip.GzipFile(fileobj=file),
        "xz": _XzReader,
    }
    archive_format = detect_format(file)
    if archive_format in openers:
        return TarStream(
            openers[archive_format](file), max(MIN_RATIO_BYTES, limits.ratio * packed_bytes)
        )
    return TarStream(file, None)


def iterate_tar_members(stream: TarStream) -> Iterator[tuple[tarfile.TarInfo, Blocks]]:
    """Yield each member of a tar archive with its bytes, in one pass. Raises ArchiveRefused."""
    try:
        with tarfile.TarFile(fileobj=stream) as tar:  # type: ignore[arg-type]
            while info := tar.next():
                tar.members = []  # type: ignore[attr-defined]  # or they would all be kept
                stream.member = info.name
                if info.size < 0:  # it would leave more room for others
                    raise make_refusal(info.name, "its size leads backwards")
                # A global header may change the name and the size of everything after it.
                if tar.pax_headers.keys() - {"comment"}:
                    raise make_refusal(info.name, "a header before it is about all that follows")
                if not info.issparse() and b"\0" in stream.last_header[:100].rstrip(b"\0"):
                    raise make_refusal(info.name, "the name contains a NUL")
                yield info, _iterate_tar_blocks(stream, info.size)
    except DAMAGE_ERRORS as error:
        raise _make_damage_refusal(error) from None
    if stream.last_header.strip(b"\0"):  # the end is empty, or zeros
        raise make_refusal(stream.member, "what comes after it is damaged; pack it again")
    while stream.read_bytes(BLOCK_BYTES):  # up to the checksum of the compressed data
        pass


def _iterate_tar_blocks(stream: TarStream, size: int) -> Blocks:
    while size > 0 and (block := stream.read_bytes(min(BLOCK_BYTES, size))):
        size -= len(block)
        yield block


def _make_damage_refusal(error: Exception) -> ArchiveRefused:
    reason = describe_damage(error)
    return ArchiveRefused(f"No archive that can be read: {reason}. Pack it again as .zip or .tar.")
