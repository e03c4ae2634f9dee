"""Read Inspect's `.eval` logs: zip archives with a JSON file for each sample.

The files come from strangers: nothing is unpacked to disk, and every size is limited. Pure.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import zstandard

from core.files.damage import describe_damage
from core.files.zip_members import (
    MAX_WINDOW_BYTES,
    ZIP_ZSTANDARD,
    DamagedMember,
    read_compressed,
)
from core.text.words import gettext_noop
from evaluation.contract import GIB, MIB
from evaluation.isolation.uploads.archives import (
    DAMAGE_ERRORS,
    ArchiveRefused,
    BoundedZip,
    make_refusal,
)

SAMPLE_PATH_PATTERN = re.compile(r"samples/.*\.json")
MAX_SAMPLE_BYTES = 64 * MIB  # a sample contains every event and call of its model
MAX_TOTAL_BYTES = 64 * GIB
MAX_RATIO = 1000  # for repetitive JSON


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
            members = [
                info for info in archive.infolist() if SAMPLE_PATH_PATTERN.fullmatch(info.filename)
            ]
            if not members:
                raise ArchiveRefused(
                    gettext_noop(
                        "The archive has no samples. Send the .eval file that Inspect wrote."
                    )
                )
            if sum(member.file_size for member in members) > MAX_TOTAL_BYTES:
                raise ArchiveRefused(
                    gettext_noop("The samples expand to more than 64 GiB. Send a smaller log.")
                )
            for member in members:
                yield member.filename, _decompress(file, archive, member)
    except DAMAGE_ERRORS as error:
        raise ArchiveRefused(
            f"The archive is damaged: {describe_damage(error)}. Send it again."
        ) from None


def _decompress(file: io.FileIO, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return a member's decompressed bytes, without trusting the archive's sizes.

    Raises ArchiveRefused.
    """
    name = member.filename
    if member.header_offset < 0:
        raise make_refusal(name, "it lies outside the archive")
    if max(member.file_size, member.compress_size) > MAX_SAMPLE_BYTES:
        raise make_refusal(name, f"it has more than {MAX_SAMPLE_BYTES // MIB} MiB")
    if member.file_size > MIB and member.file_size > MAX_RATIO * member.compress_size:
        raise make_refusal(name, f"it unfolds to more than {MAX_RATIO} times its size")
    if member.flag_bits & 0x1:
        raise make_refusal(name, "it is encrypted")
    if member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with archive.open(member) as source:
            return _read_limited(source, name)
    if member.compress_type != ZIP_ZSTANDARD:
        raise make_refusal(name, "its compression is not read here")
    # Inspect writes zstandard, which Python's zipfile cannot read yet.
    reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES)
    try:
        data = read_compressed(file.fileno(), member)
        return _read_limited(reader.stream_reader(io.BytesIO(data)), name)
    except DamagedMember as error:
        raise make_refusal(name, str(error)) from None
    except zstandard.ZstdError as error:
        raise make_refusal(name, f"damaged: {describe_damage(error)}") from None


def _read_limited(source: IO[bytes] | zstandard.ZstdDecompressionReader, name: str) -> bytes:
    data: bytes = source.read(MAX_SAMPLE_BYTES + 1)  # one more, to notice if there is more
    if len(data) > MAX_SAMPLE_BYTES:
        raise make_refusal(name, f"it has more than {MAX_SAMPLE_BYTES // MIB} MiB")
    return data
