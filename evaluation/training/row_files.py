"""Read files of training rows in a bounded process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.isolation.inference.precheck import SubmissionRefused
from tasks.line_files import FileError, LineError, iter_unpacked_lines, read_jsonl

MAX_LINE_BYTES = 100_000  # bytes

NumberedRows = list[tuple[int, Mapping[str, Any] | str]]
"""Rows with their line numbers. A wrong row is replaced by a message about the problem."""


def read_rows(path: Path, max_rows: int) -> NumberedRows:
    """Return the rows of a JSONL file, plain or gzip, with their line numbers.

    In place of a wrong line, return a message. A line is wrong if it is not an object, or equal to
    an earlier line. Raises SubmissionRefused if there are no rows or too many.
    """
    rows: NumberedRows = []
    line_by_row: dict[str, int] = {}
    try:
        with path.open("rb") as file:
            for row in read_jsonl(iter_unpacked_lines(file, MAX_LINE_BYTES)):
                if len(rows) == max_rows:
                    raise SubmissionRefused(
                        f"The file has more than {max_rows} rows. Choose the best."
                    )
                if isinstance(row, LineError):
                    rows.append((row.line, row.message))
                    continue
                # Sorted: rows are equal whatever the order of their keys.
                first_line = line_by_row.setdefault(repr(sorted(row.values.items())), row.line)
                if first_line == row.line:
                    rows.append((row.line, row.values))
                else:
                    rows.append((row.line, f"the same row appears in line {first_line}"))
    except FileError as error:
        raise SubmissionRefused(str(error)) from None
    if not rows:
        raise SubmissionRefused("The file has no rows.")
    return rows
