"""Open the members of zip archives, also those packed with Zstandard, as Inspect packs its logs."""

import io
import os
import struct
import zipfile
from pathlib import Path
from typing import IO, Any, cast

import zstandard

ZIP_ZSTANDARD = 93  # of APPNOTE 6.3.8; Python's library knows it from 3.14 on
MAX_WINDOW_BYTES = 128 * 2**20
"""The maximum memory that a frame of Zstandard may ask for."""
MAX_PACKED_BYTES = 256 * 2**20
"""The maximum size of a member that is packed with Zstandard, before it is unpacked."""


class DamagedMember(Exception):
    """Raised if a member is damaged. The message gives the reason."""


def open_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member of the archive at a path. Raises DamagedMember."""
    if info.compress_type != ZIP_ZSTANDARD:
        return archive.open(info)
    # It is in memory while it is unpacked.
    if info.compress_size > MAX_PACKED_BYTES:
        raise DamagedMember(f"it has more than {MAX_PACKED_BYTES >> 20} MiB")
    with path.open("rb") as file:
        data = read_compressed(file.fileno(), info)
    return cast("IO[bytes]", _Unpacked(data))


def read_compressed(file_number: int, info: zipfile.ZipInfo) -> bytes:
    """Return a member's packed bytes, which follow its local header. Raises DamagedMember.

    file_number: the descriptor of the open archive.
    """
    if info.header_offset < 0:
        raise DamagedMember("it lies outside the archive")
    # APPNOTE 4.3.7.
    header = os.pread(file_number, 30, info.header_offset)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise DamagedMember("it lies outside the archive")
    name_bytes, extra_bytes = struct.unpack("<HH", header[26:30])
    data_offset = info.header_offset + 30 + name_bytes + extra_bytes
    return os.pread(file_number, info.compress_size, data_offset)


class _Unpacked(io.RawIOBase):
    """A stream of the unpacked bytes of a member."""

    def __init__(self, data: bytes) -> None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
        self._reader: Any = decompressor.stream_reader(io.BytesIO(data))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._reader.readinto(buffer))
        except zstandard.ZstdError as error:
            raise DamagedMember(str(error)) from None
