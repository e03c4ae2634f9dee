"""Read tables: CSV and TSV as programs and people really write them. Pure.

One reader serves every door, so that a file means the same to contexts, rows, evaluation sets,
comparisons and the command line. Rows never vanish or merge: what does not fit is an error with its
line.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from tasks.line_files import NOT_UTF8, BadRow, LineError, Row, decode_line

DELIMITERS = {"csv": ",", "tsv": "\t"}
"""What parts the cells, by a file's ending; a .csv may use one of OTHER_DELIMITERS."""
OTHER_DELIMITERS = (";", "\t", "|")
HeaderOf = Callable[[list[str]], list[str]]
"""Return the names of columns for the cells of the first line. Raises BadRow."""
ValueOf = Callable[[str, str], Any]
"""Return the value of a filled cell, given its column's name. Raises BadRow."""
csv.field_size_limit(2**31 - 1)  # a passage may be longer than the module's 128 KiB


def read_table(
    lines: Iterable[bytes], header_of: HeaderOf, value_of: ValueOf, ending: str = "csv"
) -> Iterator[Row | LineError]:
    """Yield the rows of a table under its header. Reading ends at an error in the format.

    A .csv may have quotes. Its delimiter is the comma or, if the first line has none, a semicolon,
    tab or bar, or what a preceding line such as `sep=;` says. A .tsv has no quotes, but cells that
    a program quoted are unquoted (`_unquote_cells`). Empty cells and blank lines are skipped.

    lines: in UTF-8, with LF line ends (`tasks.line_files.iter_unpacked_lines`). ending: csv or tsv.
    """
    if ending == "tsv":
        yield from _read_tsv(lines, header_of, value_of)
        return
    bad_lines: set[int] = set()
    texts = _decode_lines(lines, bad_lines)
    first_line, skipped_count = _find_first_line(texts)
    # Excel writes and reads a first line such as `sep=;`, which is no row.
    delimiter = _parse_sep_line(first_line)
    if delimiter:
        first_line, blank = _find_first_line(texts)
        skipped_count += 1 + blank
    # The first line was read to find the delimiter, so it is put back before the others.
    rows = csv.reader(
        chain([first_line], texts) if first_line else (),
        delimiter=delimiter or _guess_delimiter(first_line),
        strict=True,
    )
    yield from _read_csv(rows, header_of, value_of, bad_lines, skipped_count)


def build_row(line: int, header: list[str], cells: list[str], value_of: ValueOf) -> Row | LineError:
    """Return a row of a table without empty cells, or an error for a wrong number of cells."""
    extra_cells = []
    for cell in cells[len(header) :]:
        if cell.strip():
            extra_cells.append(cell)
    if extra_cells or len(cells) < len(header):
        counts_text = f"{len(cells)} cells, but the header has {len(header)}"
        cure = "name each column, and put texts with the delimiter in quotes"
        cure = cure if extra_cells else "fill it, or add a delimiter"
        return LineError(line, f"{counts_text}; {cure}")
    values = {}
    for name, cell in zip(header, cells, strict=False):
        if cell.strip():
            try:
                values[name] = value_of(name, cell)
            except BadRow as error:
                return LineError(line, f"`{name}`: {error}")
    return Row(line, values)


def _read_csv(
    rows: Any, header_of: HeaderOf, value_of: ValueOf, bad_lines: set[int], skipped_count: int
) -> Iterator[Row | LineError]:
    """Yield the rows of a csv.reader.

    bad_lines: the numbers of lines that are not UTF-8. skipped_count: lines before the header.
    """
    # A quoted cell may hold line breaks, so a row begins where the row before it ended.
    start = skipped_count + 1
    header: list[str] | None = None
    try:
        for cells in rows:
            line, start = start, skipped_count + rows.line_num + 1
            # Every line of the row counts, as a cell may stretch over several.
            if any(number in bad_lines for number in range(line, start)):
                yield LineError(line, NOT_UTF8)
                if header is None:
                    return
            elif header is None:
                header = header_of(_strip_empty_end(cells))
            elif any(cell.strip() for cell in cells):
                yield build_row(line, header, cells, value_of)
    except BadRow as error:
        yield LineError(skipped_count + 1, str(error))
    except csv.Error:
        yield LineError(start, "not CSV; is a quote left open? Nothing after it is read")


def _read_tsv(
    lines: Iterable[bytes], header_of: HeaderOf, value_of: ValueOf
) -> Iterator[Row | LineError]:
    header: list[str] | None = None
    for line, raw in enumerate(lines, 1):
        try:
            cells = _unquote_cells(decode_line(raw, is_first=line == 1).rstrip("\n").split("\t"))
            if header is None:
                if any(cell.strip() for cell in cells):
                    header = header_of(_strip_empty_end(cells))
                continue
        except BadRow as error:
            yield LineError(line, str(error))
            if header is None:
                return
            continue
        if any(cell.strip() for cell in cells):
            yield build_row(line, header, cells, value_of)


def _decode_lines(lines: Iterable[bytes], bad_lines: set[int]) -> Iterator[str]:
    for line, line_bytes in enumerate(lines, 1):
        try:
            yield decode_line(line_bytes, is_first=line == 1)
        except BadRow:
            bad_lines.add(line)
            yield line_bytes.decode("utf-8", "replace")


def _find_first_line(texts: Iterator[str]) -> tuple[str, int]:
    """Return the first line that is not blank, or "", and the number of blank lines before it."""
    blank = 0
    for text in texts:
        if text.strip():
            return text, blank
        blank += 1
    return "", blank


def _parse_sep_line(line: str) -> str:
    """Return the delimiter in a line such as `sep=;`, as Excel writes it; "" for other lines."""
    name, _, delimiter = line.strip("\r\n").partition("=")
    if name.lower() == "sep" and len(delimiter) == 1:
        return delimiter
    return ""


def _guess_delimiter(header: str) -> str:
    """Return the delimiter of a header: a comma outside quotes, else the most frequent one."""
    # Between an even number of quotes: what stands inside quotes is a name and no delimiter.
    outside = "".join(header.split('"')[::2])
    counts = Counter(sign for sign in outside if sign in OTHER_DELIMITERS)
    if "," in outside or not counts:
        return ","
    return max(OTHER_DELIMITERS, key=lambda sign: counts[sign])


def _strip_empty_end(cells: list[str]) -> list[str]:
    """Return a header without the empty cells that some spreadsheets leave at its end."""
    # Cells without a name are dropped at the end only. In the middle they are an error.
    last = max((place for place, cell in enumerate(cells, 1) if cell.strip()), default=0)
    return cells[:last]


def _unquote_cells(cells: list[str]) -> list[str]:
    """Return the cells of a TSV line without quotes that a program added as in a CSV.

    In a TSV a quote is an ordinary character: `"Tis` and `"so"` are texts. Programs that quote
    either quote all cells, or those with inner quotes, which they double.
    """
    # If every cell is quoted, a program did it. A single one may be a quotation.
    unquoted_cells = [_unquote(cell) for cell in cells]
    if all(text is not None for text in unquoted_cells) and len(cells) > 1:
        return [text for text in unquoted_cells if text is not None]
    texts = []
    for cell, text in zip(cells, unquoted_cells, strict=True):
        if text is not None and '"' in text:
            texts.append(text)
        else:
            texts.append(cell)
    return texts


def _unquote(cell: str) -> str | None:
    """Return the text of a quoted cell whose inner quotes are doubled; None for other cells."""
    if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"':
        return None
    inside = cell[1:-1]
    return None if '"' in inside.replace('""', "") else inside.replace('""', '"')
