"""Store datasets as JSON lines on this machine, in a process with limits."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

from django.conf import settings

from core.files.bounded import MIB, Bounds, OutOfBounds, run_bounded
from core.files.storage.disk import open_scratch_folder
from tasks.datasets.hub import PieceCache
from tasks.datasets.reading import RowsQuery, WrittenRows, write_rows
from tasks.line_files import FileError

MEMORY_BYTES = 1536 * MIB
FORM_SECONDS, COMMAND_SECONDS = 120.0, 24 * 3600.0
FORM_BYTES, FORM_PIECES = 20 * MIB, 64
PIECES_FOLDER = Path(settings.HOME) / "hub"
"""The folder for pieces that commands have downloaded from a hub but not stored yet."""


@contextmanager
def spool_rows(
    query: RowsQuery, *, is_on_hub: bool, use_form_limits: bool = False
) -> Iterator[tuple[WrittenRows, Path]]:
    """Read rows into a file for the `with` block, and yield their description and the file.

    Everything is downloaded before anything is stored, so that no transaction waits for another
    host. The pieces that a command downloads are kept until the block ends without an error. So the
    same command can resume after being killed. use_form_limits: whether to apply the smaller limits
    of a form. Raises FileError.
    """
    # The same dataset and revision find the pieces that an earlier run fetched.
    key = sha256(f"{query.source} {query.revision}".encode()).hexdigest()[:32]
    pieces_folder = PIECES_FOLDER / key
    with open_scratch_folder() as folder:
        pieces = (
            PieceCache(folder / "pieces", FORM_PIECES)
            if use_form_limits
            else PieceCache(pieces_folder)
        )
        endpoint, path = settings.HUB_ENDPOINT if is_on_hub else "", folder / "rows.jsonl"
        max_bytes, seconds = 0, COMMAND_SECONDS
        if use_form_limits:
            max_bytes, seconds = FORM_BYTES, FORM_SECONDS
        write_file = partial(write_rows, query, endpoint, pieces, path, max_bytes)
        try:
            dataset = run_bounded(write_file, Bounds(seconds, MEMORY_BYTES))
        except OutOfBounds as error:
            raise FileError(str(error)) from None
        except OSError as error:
            raise FileError(f"{error.filename or query.source}: {error.strerror}.") from None
        yield dataset, path
    # Only after the caller stored the rows: an exception skips this line.
    shutil.rmtree(pieces_folder, ignore_errors=True)
