"""Stream the files of a released version as one ZIP archive."""

from collections.abc import Iterator, Sequence
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from evaluation.dataset_releases.stored_files import BLOCK_BYTES, open_checked_file
from evaluation.models import DatasetFile

FILE_MODE = 0o644
"""The permissions of an unpacked file."""


class _Outbox:
    """A write-only file object from which the written bytes can be taken out at any time."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []

    def write(self, block: bytes) -> int:
        self._blocks.append(bytes(block))
        return len(block)

    def flush(self) -> None:
        """Do nothing. `ZipFile` calls it."""

    def take_bytes(self) -> bytes:
        """Return the bytes that were written since the last call."""
        content = b"".join(self._blocks)
        self._blocks.clear()
        return content


def check_files(files: Sequence[DatasetFile]) -> None:
    """Check that all files are unchanged since their release. Raises OSError (EIO)."""
    for file in files:
        open_checked_file(file).close()


def stream_archive(files: Sequence[DatasetFile], folder: str) -> Iterator[bytes]:
    """Yield a ZIP archive of a version's files piece by piece. Memory holds one block of a file.

    folder: the name of the only folder in the archive. Raises OSError (EIO) if a file is missing or
    damaged.
    """
    outbox = _Outbox()
    # An object without `seek` makes ZipFile write sizes after each file instead of before it.
    with ZipFile(outbox, "w") as archive:  # type: ignore[call-overload]
        for file in files:
            entry = _describe_entry(file, folder)
            with open_checked_file(file) as source, archive.open(entry, "w") as target:
                while block := source.read(BLOCK_BYTES):
                    target.write(block)
                    # At once, so that compressed data does not accumulate in memory.
                    yield outbox.take_bytes()
    # The archive's list of files, written when it was closed.
    yield outbox.take_bytes()


def _describe_entry(file: DatasetFile, folder: str) -> ZipInfo:
    entry = ZipInfo(f"{folder}/{file.name}")
    if released_at := file.dataset.finished_at:
        # The date of the release, so that each download has the same bytes.
        entry.date_time = released_at.timetuple()[:6]
    # The size lets ZipFile choose the format for files above 4 GiB.
    entry.file_size, entry.compress_type = file.size, ZIP_DEFLATED
    entry.external_attr = FILE_MODE << 16
    return entry
