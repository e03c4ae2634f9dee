"""Files of training rows, read in a bounded process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.inference.precheck import Refused
from tasks.line_files import FileError, LineError, read_jsonl, unpacked_lines

LONGEST_LINE = 100_000  # bytes

NumberedRows = list[tuple[int, Mapping[str, Any]]]
"""Each row with its line."""


def read_rows(path: Path, most: int) -> NumberedRows:
    """The rows of a JSONL file, plain or gzip. Raises Refused where there are too many or none,
    where a line is no object, or where two are the same.
    """
    rows: NumberedRows = []
    known: dict[str, int] = {}
    try:
        with path.open("rb") as file:
            for row in read_jsonl(unpacked_lines(file, LONGEST_LINE)):
                if isinstance(row, LineError):
                    raise Refused(f"Line {row.line}: {row.message}.")
                if len(rows) == most:
                    raise Refused(f"The file has more than {most} rows. Choose the best.")
                first = known.setdefault(repr(sorted(row.values.items())), row.line)
                if first != row.line:
                    raise Refused(f"Line {row.line}: the same row stands in line {first}.")
                rows.append((row.line, row.values))
    except FileError as error:
        raise Refused(str(error)) from None
    if not rows:
        raise Refused("The file has no rows.")
    return rows
