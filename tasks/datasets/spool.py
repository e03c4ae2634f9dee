"""Datasets as files of JSON lines on this machine, read in a process within bounds."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

from django.conf import settings

from core.files.bounded import MIB, Bounds, OutOfBounds, bounded
from core.files.storage.disk import scratch
from tasks.datasets.hub import PieceCache
from tasks.datasets.reading import RowsQuery, WrittenRows, write_rows
from tasks.line_files import FileError

MEMORY_BYTES = 1536 * MIB
PAGE_SECONDS, COMMAND_SECONDS = 120.0, 24 * 3600.0
PAGE_BYTES, PAGE_PIECES = 20 * MIB, 64
PIECES_FOLDER = Path(settings.HOME) / "hub"
"""What commands fetched of a hub and did not store yet."""


@contextmanager
def spool_rows(
    query: RowsQuery, *, of_hub: bool, is_page: bool = False
) -> Iterator[tuple[WrittenRows, Path]]:
    """Yield a description of the rows, and the file that holds them within the context.

    Everything is fetched before anything is stored, so that no transaction waits for another host.
    The pieces that a command fetched are kept until the context exits without an error, so that the
    same command can resume after being killed. is_page: apply the smaller limits of a form.
    Raises FileError.
    """
    # The same dataset and revision find the pieces that an earlier run fetched.
    key = sha256(f"{query.where} {query.revision}".encode()).hexdigest()[:32]
    pieces_folder = PIECES_FOLDER / key
    with scratch() as folder:
        pieces = (
            PieceCache(folder / "pieces", PAGE_PIECES) if is_page else PieceCache(pieces_folder)
        )
        endpoint, into = settings.HUB_ENDPOINT if of_hub else "", folder / "rows.jsonl"
        max_bytes, seconds = 0, COMMAND_SECONDS
        if is_page:
            max_bytes, seconds = PAGE_BYTES, PAGE_SECONDS
        read = partial(write_rows, query, endpoint, pieces, into, max_bytes)
        try:
            dataset = bounded(read, Bounds(seconds, MEMORY_BYTES))
        except OutOfBounds as error:
            raise FileError(str(error)) from None
        except OSError as error:
            raise FileError(f"{error.filename or query.where}: {error.strerror}.") from None
        yield dataset, into
    # Only after the caller stored the rows: an exception skips this line.
    shutil.rmtree(pieces_folder, ignore_errors=True)
