"""Read the first sheet of a workbook as a table. No database."""

import datetime
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook

from tasks.line_files import BadRow, FileError, LineError, Row
from tasks.table_files import build_row

SPREADSHEET_ENDINGS = ("xlsx", "xls", "ods")
MAX_CELLS = 5_000_000
PROLOG_BYTES = 2**20
"""The number of bytes of an XML file that are searched for a document type declaration."""
UNREADABLE_MESSAGE = (
    "This isn't a readable spreadsheet. Save it as .xlsx without a password, or as .csv."
)


def read_first_sheet(data: bytes) -> list[list[str]]:
    """Return the cells of the first sheet as texts, row by row.

    Numbers are written as in JSON, times as in ISO 8601, and a formula as its last result.
    Raises FileError.
    """
    _check_parts(data)
    try:
        with CalamineWorkbook.from_filelike(BytesIO(data)) as workbook:
            sheet = workbook.get_sheet_by_index(0)
            # Checked before the cells are read: a sheet may claim millions of empty ones.
            if sheet.height * sheet.width > MAX_CELLS:
                raise FileError("The first sheet has too many cells. Split it.")
            rows = sheet.to_python(skip_empty_area=False)
    except CalamineError:
        raise FileError(UNREADABLE_MESSAGE) from None
    return [[_format_cell(cell) for cell in row] for row in rows]


def _check_parts(data: bytes) -> None:
    """Raise FileError for a workbook with a document type declaration.

    No spreadsheet program writes one, and it could refer to other files.
    """
    # The older .xls is no archive, and has no XML in it.
    if not zipfile.is_zipfile(BytesIO(data)):
        return
    try:
        with zipfile.ZipFile(BytesIO(data)) as parts:
            for member in parts.infolist():
                with parts.open(member) as file:
                    start = file.read(PROLOG_BYTES).replace(b"\0", b"")  # also of UTF-16
                if b"<!DOCTYPE" in start.upper():
                    raise FileError("The workbook has a document type (DTD). Save it again.")
    except (zipfile.BadZipFile, RuntimeError, EOFError, OSError, zlib.error):
        raise FileError(UNREADABLE_MESSAGE) from None


def read_sheet(
    rows: list[list[str]],
    parse_header: Callable[[list[str]], list[str]],
    parse_cell: Callable[[str, str], Any],
) -> Iterator[Row | LineError]:
    """Yield the rows of a sheet whose first row is the header.

    For parse_header and parse_cell, see `read_table`.
    """
    if not rows:
        return
    width = max((number for number, cell in enumerate(rows[0], 1) if cell.strip()), default=0)
    try:
        header = parse_header(rows[0][:width])
    except BadRow as error:
        yield LineError(1, str(error))
        return
    for line_number, cells in enumerate(rows[1:], 2):
        if any(cell.strip() for cell in cells[width:]):
            yield LineError(
                line_number, "a cell stands right of the last column that has a name; name it"
            )
        elif any(cells):
            yield build_row(line_number, header, cells[:width], parse_cell)


def _format_cell(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell)
