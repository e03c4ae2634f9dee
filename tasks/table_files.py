"""Read tables: CSV and TSV files as programs and people really write them. Pure.

All imports use this reader, so that a file means the same for contexts, rows, evaluation sets,
comparisons and the command line. Rows never disappear or merge: a line that does not fit is
reported as an error with its number.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from tasks.line_files import NOT_UTF8, BadRow, LineError, Row, decode_line

DELIMITERS = {"csv": ",", "tsv": "\t"}
"""The delimiter of cells, by file ending. A .csv may use one of OTHER_DELIMITERS."""
OTHER_DELIMITERS = (";", "\t", "|")
HeaderParser = Callable[[list[str]], list[str]]
"""A function that returns column names for the cells of the first line. Raises BadRow."""
CellParser = Callable[[str, str], Any]
"""A function that returns the value of a non-empty cell, given the column's name and the cell.

Raises BadRow.
"""
csv.field_size_limit(2**31 - 1)  # a passage may be longer than the module's 128 KiB


def read_table(
    lines: Iterable[bytes], parse_header: HeaderParser, parse_cell: CellParser, ending: str = "csv"
) -> Iterator[Row | LineError]:
    """Yield the rows of a table with a header. Reading ends at an error in the format.

    A .csv may have quotes. Its delimiter is the comma or, if the first line has none, a semicolon,
    tab or bar. A line such as `sep=;` before the header may set another one. A .tsv has no quotes,
    but cells that a program quoted are unquoted (`_unquote_cells`). Empty cells and blank lines are
    skipped.

    lines: in UTF-8, with LF line ends (`tasks.line_files.iter_unpacked_lines`). ending: csv or tsv.
    """
    if ending == "tsv":
        yield from _read_tsv(lines, parse_header, parse_cell)
        return
    bad_lines: set[int] = set()
    texts = _decode_lines(lines, bad_lines)
    first_line, skipped_count = _find_first_line(texts)
    # Excel writes and reads a first line such as `sep=;`, which is no row.
    delimiter = _parse_sep_line(first_line)
    if delimiter:
        first_line, blank_count = _find_first_line(texts)
        skipped_count += 1 + blank_count
    # The first line was read to find the delimiter, so it is put back before the others.
    rows = csv.reader(
        chain([first_line], texts) if first_line else (),
        delimiter=delimiter or _guess_delimiter(first_line),
        # Otherwise a quote left open would turn the rest of the file into one cell.
        strict=True,
    )
    yield from _read_csv(rows, parse_header, parse_cell, bad_lines, skipped_count)


def build_row(
    line: int, header: list[str], cells: list[str], parse_cell: CellParser
) -> Row | LineError:
    """Return a row of a table without its empty cells, or an error.

    The number of cells must fit the header, and `parse_cell` must accept each cell.
    """
    extra_cells = []
    for cell in cells[len(header) :]:
        if cell.strip():
            extra_cells.append(cell)
    if extra_cells or len(cells) < len(header):
        counts_text = f"{len(cells)} cells, but the header has {len(header)}"
        advice = "name each column, and put texts with the delimiter in quotes"
        advice = advice if extra_cells else "fill it, or add a delimiter"
        return LineError(line, f"{counts_text}; {advice}")
    values = {}
    for name, cell in zip(header, cells, strict=False):
        if cell.strip():
            try:
                values[name] = parse_cell(name, cell)
            except BadRow as error:
                return LineError(line, f"`{name}`: {error}")
    return Row(line, values)


def _read_csv(
    rows: Any,
    parse_header: HeaderParser,
    parse_cell: CellParser,
    bad_lines: set[int],
    skipped_count: int,
) -> Iterator[Row | LineError]:
    """Yield the rows of a csv.reader.

    bad_lines: the numbers of lines that are not UTF-8. skipped_count: the number of lines before
    the header.
    """
    # A quoted cell may hold line breaks, so a row begins where the row before it ended.
    next_start = skipped_count + 1
    header: list[str] | None = None
    try:
        for cells in rows:
            row_start, next_start = next_start, skipped_count + rows.line_num + 1
            # Every line of the row counts, as a cell may stretch over several.
            if any(number in bad_lines for number in range(row_start, next_start)):
                yield LineError(row_start, NOT_UTF8)
                # Without a header no later row can be read.
                if header is None:
                    return
            elif header is None:
                header = parse_header(_strip_empty_end(cells))
            elif any(cell.strip() for cell in cells):
                yield build_row(row_start, header, cells, parse_cell)
    except BadRow as error:
        yield LineError(skipped_count + 1, str(error))
    except csv.Error:
        yield LineError(next_start, "not CSV; is a quote left open? Nothing after it is read")


def _read_tsv(
    lines: Iterable[bytes], parse_header: HeaderParser, parse_cell: CellParser
) -> Iterator[Row | LineError]:
    header: list[str] | None = None
    for line_number, line_bytes in enumerate(lines, 1):
        try:
            cells = _unquote_cells(
                decode_line(line_bytes, is_first=line_number == 1).rstrip("\n").split("\t")
            )
            if header is None:
                if any(cell.strip() for cell in cells):
                    header = parse_header(_strip_empty_end(cells))
                continue
        except BadRow as error:
            yield LineError(line_number, str(error))
            if header is None:
                return
            continue
        if any(cell.strip() for cell in cells):
            yield build_row(line_number, header, cells, parse_cell)


def _decode_lines(lines: Iterable[bytes], bad_lines: set[int]) -> Iterator[str]:
    for line_number, line_bytes in enumerate(lines, 1):
        try:
            yield decode_line(line_bytes, is_first=line_number == 1)
        except BadRow:
            bad_lines.add(line_number)
            # Not dropped, because the numbers of all later lines would be wrong.
            yield line_bytes.decode("utf-8", "replace")


def _find_first_line(texts: Iterator[str]) -> tuple[str, int]:
    """Return the first line that is not blank, or "", and the number of blank lines before it."""
    blank_count = 0
    for text in texts:
        if text.strip():
            return text, blank_count
        blank_count += 1
    return "", blank_count


def _parse_sep_line(line: str) -> str:
    """Return the delimiter in a line such as `sep=;`, as Excel writes it; "" for other lines."""
    name, _, delimiter = line.strip("\r\n").partition("=")
    if name.lower() == "sep" and len(delimiter) == 1:
        return delimiter
    return ""


def _guess_delimiter(header: str) -> str:
    """Return a guess at the delimiter of a header.

    It is the comma if there is one outside quotes, or if there is no delimiter. Otherwise it is the
    most frequent delimiter.
    """
    # Between an even number of quotes: what stands inside quotes is a name and no delimiter.
    unquoted_text = "".join(header.split('"')[::2])
    counts = Counter(character for character in unquoted_text if character in OTHER_DELIMITERS)
    if "," in unquoted_text or not counts:
        return ","
    return max(OTHER_DELIMITERS, key=lambda character: counts[character])


def _strip_empty_end(cells: list[str]) -> list[str]:
    """Return a header without the empty cells that some spreadsheets leave at its end."""
    # Cells without a name are dropped at the end only. In the middle they are an error.
    last_number = max((number for number, cell in enumerate(cells, 1) if cell.strip()), default=0)
    return cells[:last_number]


def _unquote_cells(cells: list[str]) -> list[str]:
    """Return the cells of a TSV line, without the CSV-style quotes that some programs add.

    In a TSV a quote is an ordinary character: `"Tis` and `"so"` are texts. Such programs
    quote either every cell or only cells that contain quotes, and they double the inner quotes.
    """
    # If every cell is quoted, a program did it. A single one may be a quotation.
    unquoted_cells = [_unquote_cell(cell) for cell in cells]
    if all(text is not None for text in unquoted_cells) and len(cells) > 1:
        return [text for text in unquoted_cells if text is not None]
    texts = []
    for cell, text in zip(cells, unquoted_cells, strict=True):
        if text is not None and '"' in text:
            texts.append(text)
        else:
            texts.append(cell)
    return texts


def _unquote_cell(cell: str) -> str | None:
    """Return the text of a quoted cell whose inner quotes are doubled; None for other cells."""
    if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"':
        return None
    inner_text = cell[1:-1]
    return None if '"' in inner_text.replace('""', "") else inner_text.replace('""', '"')
