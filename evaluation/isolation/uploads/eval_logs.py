"""Reads the logs of Inspect, `.eval` files: zip archives with a JSON file for each sample.

They are strangers' files: nothing is unpacked to disk, and every size is bounded. Pure.
"""

import io
import os
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import zstandard

from core.files.damage import damage_of
from core.text.words import gettext_noop
from evaluation.contract import GIB, MIB
from evaluation.isolation.uploads.archives import (
    DAMAGE_ERRORS,
    ArchiveRefused,
    BoundedZip,
    make_refusal,
)

SAMPLE_PATH = re.compile(r"samples/.*\.json")
ZSTANDARD = 93  # of APPNOTE 6.3.8; Python's library knows it from 3.14 on
SAMPLE_BYTES = 64 * MIB  # a sample has every event and call of its model
ALL_BYTES = 64 * GIB
WINDOW_BYTES = 128 * MIB  # of memory that a frame of zstandard may ask for
MOST_RATIO = 1000  # of JSON that repeats itself


def is_zip(path: Path) -> bool:
    """Return whether a file starts like a zip archive."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def read_samples(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the JSON of each sample, in the order of the archive.

    Raises ArchiveRefused.
    """
    try:
        with BoundedZip(path) as file, zipfile.ZipFile(file) as archive:  # type: ignore[arg-type]
            members = [info for info in archive.infolist() if SAMPLE_PATH.fullmatch(info.filename)]
            if not members:
                raise ArchiveRefused(
                    gettext_noop(
                        "The archive has no samples. Send the .eval file that Inspect wrote."
                    )
                )
            if sum(member.file_size for member in members) > ALL_BYTES:
                raise ArchiveRefused(gettext_noop("The samples unfold to more than 64 GiB."))
            for member in members:
                yield member.filename, _decompress(file, archive, member)
    except DAMAGE_ERRORS as error:
        raise ArchiveRefused(
            f"The archive is damaged: {damage_of(error)}. Send it again."
        ) from None


def _decompress(file: io.FileIO, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return a member's decompressed bytes, without trusting the archive's sizes.

    Raises ArchiveRefused.
    """
    name = member.filename
    if member.header_offset < 0:
        raise make_refusal(name, "it lies outside the archive")
    if max(member.file_size, member.compress_size) > SAMPLE_BYTES:
        raise make_refusal(name, f"it has more than {SAMPLE_BYTES // MIB} MiB")
    if member.file_size > MIB and member.file_size > MOST_RATIO * member.compress_size:
        raise make_refusal(name, f"it unfolds to more than {MOST_RATIO} times its size")
    if member.flag_bits & 0x1:
        raise make_refusal(name, "it is encrypted")
    if member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with archive.open(member) as source:
            return _read_limited(source, name)
    if member.compress_type != ZSTANDARD:
        raise make_refusal(name, "its compression is not read here")
    # Inspect writes zstandard, which Python's zipfile cannot read yet.
    reader = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES)
    try:
        return _read_limited(reader.stream_reader(io.BytesIO(_read_compressed(file, member))), name)
    except zstandard.ZstdError as error:
        raise make_refusal(name, f"damaged: {damage_of(error)}") from None


def _read_limited(source: IO[bytes] | zstandard.ZstdDecompressionReader, name: str) -> bytes:
    data: bytes = source.read(SAMPLE_BYTES + 1)  # one more, to notice that there is more
    if len(data) > SAMPLE_BYTES:
        raise make_refusal(name, f"it has more than {SAMPLE_BYTES // MIB} MiB")
    return data


def _read_compressed(file: io.FileIO, member: zipfile.ZipInfo) -> bytes:
    """Return a member's compressed bytes, which follow its local header (APPNOTE 4.3.7)."""
    header = os.pread(file.fileno(), 30, member.header_offset)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise make_refusal(member.filename, "it lies outside the archive")
    names, extra = struct.unpack("<HH", header[26:30])
    begin = member.header_offset + 30 + names + extra
    return os.pread(file.fileno(), member.compress_size, begin)
