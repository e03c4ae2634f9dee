"""The two files of a version of an evaluation set, made of examples or of somebody's file."""

import gzip
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import orjson

from dynabench.lib.bounded import Bounds, OutOfBounds, bounded
from evaluation.contract import GIB, SetRow
from evaluation.sets.parsing import SetFile, WrongLines
from evaluation.sets.preview import Preview, preview_of
from tasks.line_files import FileError, LineError

T = TypeVar("T")
MOST_SLICES = 200
"""Values of a slice that a version counts; the most frequent ones."""
BOUNDS = Bounds(seconds=600, memory_bytes=2 * GIB)  # five million uids, and what Parquet takes


class Written(NamedTuple):
    """What two files hold: their digest, examples, and {slice field: {value: examples}}."""

    sha256: str
    size: int
    slices: dict[str, dict[str, int]]


def write_set(rows: Iterable[SetRow], folder: Path) -> Written:
    """`inputs` and `gold` in the folder, line by line about the same example.

    A slice may be a choice that gives the answer away, so slices lie beside the answers. Raises
    what `rows` does; of a file, which others made, FileError, also for one that takes too much.
    """
    if not isinstance(rows, SetFile):
        return _write(rows, folder)
    try:
        written, rows.errors, rows.left_out = _within(partial(_write_file, rows, folder))
    except WrongLines as wrong:
        rows.errors = wrong.errors
        raise
    return written


def preview(file: SetFile) -> Preview:
    """What a file of others would bring; as `preview_of`, within bounds. Raises FileError."""
    return _within(partial(preview_of, file))


def _within(read: Callable[[], T]) -> T:
    try:
        return bounded(read, BOUNDS)
    except OutOfBounds as error:
        raise FileError(str(error)) from None


def _write_file(file: SetFile, folder: Path) -> tuple[Written, list[LineError], dict[str, int]]:
    return _write(file, folder), file.errors, file.left_out


def _write(rows: Iterable[SetRow], folder: Path) -> Written:
    digest, size = hashlib.sha256(), 0
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    with ExitStack() as stack:
        inputs, gold = (stack.enter_context(_packed(folder / n)) for n in ("inputs", "gold"))
        for row in rows:
            size += 1
            for name, values in row.slices.items():
                counts[name].update(values)
            told = {"uid": row.uid, "inputs": row.inputs}
            kept = {"uid": row.uid, "gold": row.gold, "slices": row.slices}
            for file, value in ((inputs, told), (gold, kept)):
                line = orjson.dumps(value) + b"\n"
                digest.update(line)
                file.write(line)
    slices = {name: dict(count.most_common(MOST_SLICES)) for name, count in counts.items()}
    return Written(digest.hexdigest(), size, slices)


def _packed(path: Path) -> gzip.GzipFile:
    """A gzip file that has the same bytes whenever the same is written to it."""
    return gzip.GzipFile(path, "wb", compresslevel=6, mtime=0)
