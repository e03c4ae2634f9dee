"""Archives that people submit: checked before anything is unpacked, and unpacked without trust.

Zip, tar, tar.gz and tar.xz, told apart by their first bytes. Every refusal names the member and the
rule. What archives can do to a reader is listed in docs/threat-model.md.
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

from core.files.damage import damage_of
from core.text.words import gettext_noop
from evaluation.contract import GIB, MIB

BLOCK_BYTES = MIB
LARGEST_HEADER = 64 * 1024  # bytes that tarfile reads at once
LARGEST_DIRECTORY = 4 * MIB  # the table of a zip archive
XZ_MEMORY = 128 * MIB
MIN_RATIO_BYTES = MIB  # below it no ratio is looked at
LONGEST_NAME, LONGEST_PART = 1000, 255  # bytes
WINDOWS_NAME = re.compile(
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
MAGIC = {
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
    RuntimeError,  # what zipfile does not know; and headers that lead to headers without end
    ValueError,
    OverflowError,
)
Blocks = Iterator[bytes]


class ArchiveRefused(Exception):
    """Raised when an archive breaks a rule. The message names the member and the rule."""


@dataclass(frozen=True)
class ArchiveLimits:
    """The limits of an archive. ratio: of unpacked to packed bytes."""

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


def unpack_archive(path: Path, into: Path, limits: ArchiveLimits = ArchiveLimits()) -> None:
    """Check the archive, then write its files (0644) and folders (0755) into the folder `into`.

    Raises ArchiveRefused before anything is written, unless only the contents show the damage.
    """
    check_archive(path, limits)  # wholly, before the first byte is written
    for member, blocks in _check_members(path, limits):
        target = into / member.name
        if member.is_folder:
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            _write_member(target, member, blocks)
    # Whatever this process's umask is: the sandbox's user, who is nobody, reads them.
    for name, _, _ in os.walk(into):
        Path(name).chmod(0o755)


def _write_member(target: Path, member: Member, blocks: Blocks) -> None:
    count = 0
    with target.open("xb") as file:  # x: never through a link, never over another file
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
    if rule := _name_rule(name, parts) or _portable_rule(parts, size):
        raise make_refusal(name, rule)
    return "/".join(parts) or "."


def _name_rule(name: str, parts: list[str]) -> str | None:
    """Return the path-traversal rule that a name violates, or None."""
    if "\0" in name:
        return "the name holds a NUL"
    if name.startswith("/") or re.match("[A-Za-z]:", name):
        return "the name is absolute; pack with names that begin at the model's folder"
    if "\\" in name:
        return "the name holds a backslash; use / between folders"
    if ".." in parts:
        return "the name leads out of the archive (..)"
    return None


def _portable_rule(parts: list[str], size: int) -> str | None:
    """Return the portability rule that a name violates, or None."""
    if not all(part.isprintable() for part in parts):
        return "the name holds a character that cannot be printed"
    if any(WINDOWS_NAME.search(part) for part in parts):
        return "Windows cannot keep a file of that name; choose another"
    if size > LONGEST_NAME or any(len(part.encode()) > LONGEST_PART for part in parts):
        return f"the name is too long ({LONGEST_PART} bytes a part, {LONGEST_NAME} in all)"
    return None


def _check_members(path: Path, limits: ArchiveLimits) -> Iterator[tuple[Member, Blocks]]:
    """Yield each member with its bytes, which must be read before the next member or not at all.

    Raises ArchiveRefused.
    """
    files: set[str] = set()
    folders: set[str] = set()
    total = number = 0
    for number, (raw_name, size, is_folder, blocks) in enumerate(_members(path, limits), 1):
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
        # Two names may be one file on another system: macOS composes letters, Windows ignores case.
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
        raise ArchiveRefused(gettext_noop("There is no file in the archive."))


RawMember = tuple[str, int, bool, Blocks]
"""Name, claimed size, whether it is a folder, bytes."""


def _members(path: Path, limits: ArchiveLimits) -> Iterator[RawMember]:
    """Yield each plain file and folder of an archive of any format. Raises ArchiveRefused."""
    with path.open("rb") as file:
        archive_format = format_of(file)
        if archive_format == "zip":
            yield from _zip_members(path, limits)
            return
        if archive_format not in READABLE_FORMATS:
            raise ArchiveRefused(
                f"{archive_format} is not read here. Pack it as .zip, .tar or .tar.gz."
            )
        stream = open_decompressed(file, path.stat().st_size, limits)
        for info, blocks in tar_members(stream):
            if info.issparse() or not (info.isreg() or info.isdir()):
                kind = REFUSED_TYPES.get(info.type, "a special file")
                raise make_refusal(info.name, f"it is {kind}; pack plain files and folders only")
            yield info.name, info.size, info.isdir(), blocks


def format_of(file: "BufferedReader[Any]") -> str:
    """Return the format that the first bytes show: zip, gzip, xz, plain, or an unsupported one."""
    start = file.peek(8)
    return next((name for magic, name in MAGIC.items() if start.startswith(magic)), "plain")


# --- zip


class BoundedZip(io.FileIO):
    """A file that refuses large reads, because zipfile reads an archive's directory at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to `size` bytes. Raises ArchiveRefused for more than LARGEST_DIRECTORY."""
        # The archive says how large its table is, and zipfile would read it at once.
        if size and size > LARGEST_DIRECTORY:
            raise ArchiveRefused(
                gettext_noop("The table of the archive is too large. Pack fewer files.")
            )
        return super().read(size) or b""


def _zip_members(path: Path, limits: ArchiveLimits) -> Iterator[RawMember]:
    packed_bytes = path.stat().st_size
    unpacked_bytes = 0
    try:
        with BoundedZip(path) as file, zipfile.ZipFile(file) as archive:  # type: ignore[arg-type]
            for info in archive.infolist():
                unpacked_bytes += info.file_size
                if rule := _zip_rule(info, unpacked_bytes, packed_bytes, limits):
                    raise make_refusal(info.orig_filename, rule)
                blocks = _zip_blocks(archive, info)
                name = info.orig_filename
                yield name, info.file_size, name.endswith("/"), blocks
    except DAMAGE_ERRORS as error:
        raise _make_damage_refusal(error) from None


def _zip_rule(
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


def _zip_blocks(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Blocks:
    try:
        with archive.open(info) as source:
            while block := source.read(BLOCK_BYTES):
                yield block
    except DAMAGE_ERRORS as error:
        raise make_refusal(info.filename, f"damaged: {damage_of(error)}. Pack it again") from None


# --- tar


class Stream:
    """A forward-only file with the methods that `tarfile` needs.

    Raises ArchiveRefused if it unpacks to more than `max_bytes` or has a large header, because
    `tarfile` reads a header into memory whole.
    """

    def __init__(self, source: ByteSource, max_bytes: int | None) -> None:
        self._source, self._most = source, max_bytes
        self._position = 0
        self.last = b""  # the header that was read last
        self.member = "the first member"  # what is being read

    def tell(self) -> int:
        """Return the number of bytes read so far."""
        return self._position

    def read(self, size: int, /) -> bytes:
        """Read a header of `size` bytes, or fewer at the end."""
        if not 0 <= size <= LARGEST_HEADER:
            raise make_refusal(self.member, "a header after it is too large")
        self.last = self.take(size)
        return self.last

    def take(self, size: int) -> bytes:
        """Read `size` bytes, or fewer at the end."""
        parts, remaining_bytes = [], size
        try:
            while remaining_bytes and (
                part := self._source.read(min(remaining_bytes, BLOCK_BYTES))
            ):
                parts.append(part)
                remaining_bytes -= len(part)
        except DAMAGE_ERRORS as error:
            raise _make_damage_refusal(error) from None
        self._position += size - remaining_bytes
        # Counted while it unfolds: what an archive says of its own size is not to be trusted.
        if self._most and self._position > self._most:
            raise make_refusal(self.member, "at it the archive unfolds to far more than its size")
        return b"".join(parts)

    def seek(self, offset: int, /) -> None:
        """Move forward to the offset."""
        if offset < self._position:
            raise make_refusal(self.member, "its size leads backwards")
        while self._position < offset and self.take(min(BLOCK_BYTES, offset - self._position)):
            pass


class _Xz:
    """A reader for an xz file, which refuses files that need more than XZ_MEMORY."""

    def __init__(self, file: ByteSource) -> None:
        self._file = file
        self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)

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
                if "emory" not in str(error):  # nothing else tells them apart
                    raise
                raise ArchiveRefused(
                    gettext_noop("It takes too much memory to unpack. Pack it as .zip or .tar.gz.")
                ) from None
        return data


def open_decompressed(
    file: "BufferedReader[Any]", packed_bytes: int, limits: ArchiveLimits
) -> Stream:
    """Return a stream of the decompressed bytes of a file. Raises ArchiveRefused.

    packed_bytes: the size of the compressed file.
    """
    openers: Mapping[str, Callable[[BufferedReader[Any]], ByteSource]] = {
        "gzip": lambda file: gzip.GzipFile(fileobj=file),
        "xz": _Xz,
    }
    archive_format = format_of(file)
    if archive_format in openers:
        return Stream(
            openers[archive_format](file), max(MIN_RATIO_BYTES, limits.ratio * packed_bytes)
        )
    return Stream(file, None)


def tar_members(stream: Stream) -> Iterator[tuple[tarfile.TarInfo, Blocks]]:
    """Yield each member of a tar archive with its bytes, in one pass. Raises ArchiveRefused."""
    try:
        with tarfile.TarFile(fileobj=stream) as tar:  # type: ignore[arg-type]
            while info := tar.next():
                tar.members = []  # type: ignore[attr-defined]  # or they would all be kept
                stream.member = info.name
                if info.size < 0:  # it would make room for others
                    raise make_refusal(info.name, "its size leads backwards")
                # A global header may change the name and the size of everything after it.
                if tar.pax_headers.keys() - {"comment"}:
                    raise make_refusal(info.name, "a header before it is about all that follows")
                if not info.issparse() and b"\0" in stream.last[:100].rstrip(b"\0"):
                    raise make_refusal(info.name, "the name holds a NUL")
                yield info, _tar_blocks(stream, info.size)
    except DAMAGE_ERRORS as error:
        raise _make_damage_refusal(error) from None
    if stream.last.strip(b"\0"):  # the end is empty, or zeros
        raise make_refusal(stream.member, "what comes after it is damaged; pack it again")
    while stream.take(BLOCK_BYTES):  # to the checksum of what is compressed
        pass


def _tar_blocks(stream: Stream, size: int) -> Blocks:
    while size > 0 and (block := stream.take(min(BLOCK_BYTES, size))):
        size -= len(block)
        yield block


def _make_damage_refusal(error: Exception) -> ArchiveRefused:
    reason = damage_of(error)
    return ArchiveRefused(f"No archive that can be read: {reason}. Pack it again as .zip or .tar.")
