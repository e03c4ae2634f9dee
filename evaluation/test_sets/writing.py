"""Write the two files of a version of an evaluation set, and preview the examples of a file."""

import gzip
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from core.files.bounded import Bounds, OutOfBounds, run_bounded
from evaluation.contract import GIB, SetRow
from evaluation.set_lines import build_stored_lines
from evaluation.test_sets.parsing import InvalidLines, SetFile
from tasks.line_files import FileError, LineError

T = TypeVar("T")
MAX_SLICES = 200
"""The maximum number of values of a slice that a version counts, most frequent first."""
MAX_PREVIEW_ROWS = 5
"""The maximum number of examples that a preview shows."""
MAX_COUNTED_VALUES = 20
"""The maximum number of answers, or of a slice's values, that a preview counts one by one."""
READ_BOUNDS = Bounds(seconds=600, memory_bytes=2 * GIB)  # five million uids, and what Parquet takes


class WrittenSet(NamedTuple):
    """The result of `write_set`. slices: number of examples as {slice field: {value: examples}}."""

    sha256: str
    size: int
    slices: dict[str, dict[str, int]]


@dataclass(frozen=True)
class Preview:
    """A summary of a file's examples. Lists only the most frequent answers and slice values."""

    size: int
    rows: Sequence[SetRow]
    answers: Sequence[tuple[str, int]]
    slices: Mapping[str, Sequence[tuple[str, int]]]
    left_out: Mapping[str, int]
    errors: Sequence[LineError]


def write_set(rows: Iterable[SetRow], folder: Path) -> WrittenSet:
    """Write the files `inputs` and `gold` into the folder, with one line per example in each.

    Slices are stored with the answers, because a slice may be a choice that reveals the answer.
    Propagates exceptions of `rows`. Raises FileError for a submitted file, also if it takes too
    much time or memory.
    """
    if not isinstance(rows, SetFile):
        return _write_rows(rows, folder)
    try:
        written_set, rows.errors, rows.left_out = _read_bounded(partial(_write_file, rows, folder))
    except InvalidLines as wrong:
        rows.errors = wrong.errors
        raise
    return written_set


def preview_file(file: SetFile) -> Preview:
    """Return the preview of a submitted file, with limits on time and memory.

    Raises FileError.
    """
    return _read_bounded(partial(build_preview, file))


def _read_bounded(read_set: Callable[[], T]) -> T:
    """Call `read_set` in a separate process within READ_BOUNDS and return its result.

    Raises FileError.
    """
    try:
        return run_bounded(read_set, READ_BOUNDS)
    except OutOfBounds as error:
        raise FileError(str(error)) from None


def _write_file(file: SetFile, folder: Path) -> tuple[WrittenSet, list[LineError], dict[str, int]]:
    return _write_rows(file, folder), file.errors, file.left_out


def _write_rows(rows: Iterable[SetRow], folder: Path) -> WrittenSet:
    digest, size = hashlib.sha256(), 0
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    with ExitStack() as stack:
        inputs = stack.enter_context(_open_gzip(folder / "inputs"))
        gold = stack.enter_context(_open_gzip(folder / "gold"))
        for row in rows:
            size += 1
            for name, values in row.slices.items():
                counts[name].update(values)
            for file, line in zip((inputs, gold), build_stored_lines(row), strict=True):
                # Over lines of both files alternately, so that one digest covers both.
                digest.update(line)
                file.write(line)
    slices = {name: dict(count.most_common(MAX_SLICES)) for name, count in counts.items()}
    return WrittenSet(digest.hexdigest(), size, slices)


def _open_gzip(path: Path) -> gzip.GzipFile:
    """Open a gzip file for writing. It gets no timestamp, so equal contents give equal bytes."""
    return gzip.GzipFile(path, "wb", compresslevel=6, mtime=0)


def build_preview(file: SetFile) -> Preview:
    """Read a file once and return its preview. Raises FileError if the file cannot be read."""
    rows: list[SetRow] = []
    answers: Counter[str] = Counter()
    slices: dict[str, Counter[str]] = defaultdict(Counter)
    size = 0
    with suppress(InvalidLines):  # they are in `file.errors`
        for row in file:
            size += 1
            if size <= MAX_PREVIEW_ROWS:
                rows.append(row)
            answers.update(_describe_answer(answer) for answer in row.gold[:1])
            for name, values in row.slices.items():
                slices[name].update(values)
    most_frequent = {name: count.most_common(MAX_COUNTED_VALUES) for name, count in slices.items()}
    return Preview(
        size,
        rows,
        answers.most_common(MAX_COUNTED_VALUES),
        most_frequent,
        file.left_out,
        file.errors,
    )


def _describe_answer(answer: Any) -> str:
    if isinstance(answer, list):
        answer = ", ".join(map(str, answer))
    return str(answer)[:100]
