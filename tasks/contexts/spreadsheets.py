"""Tables in spreadsheets: the first sheet of a workbook, a row of it a row. Knows no database."""

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
"""Of an XML file, in which its document type stands if it has one."""
UNREADABLE_MESSAGE = (
    "The file is no spreadsheet that can be read. Save it as .xlsx without a password, or as .csv."
)


def read_first_sheet(data: bytes) -> list[list[str]]:
    """Return the cells of the first sheet as texts, row by row.

    Numbers are as short as in JSON, times are in ISO 8601, and a formula has its last value.
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

    No spreadsheet program writes one, and it can refer to other files.
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
    header_of: Callable[[list[str]], list[str]],
    value_of: Callable[[str, str], Any],
) -> Iterator[Row | LineError]:
    """Yield the rows of a sheet whose first row is the header. Callbacks are as in `read_table`."""
    if not rows:
        return
    width = max((place for place, cell in enumerate(rows[0], 1) if cell.strip()), default=0)
    try:
        header = header_of(rows[0][:width])
    except BadRow as error:
        yield LineError(1, str(error))
        return
    for line, cells in enumerate(rows[1:], 2):
        if any(cell.strip() for cell in cells[width:]):
            yield LineError(line, "a cell stands right of the last column that has a name; name it")
        elif any(cells):
            yield build_row(line, header, cells[:width], value_of)


def _format_cell(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell)
