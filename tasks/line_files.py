"""Files of one row a line, JSONL or CSV, read strictly; each wrong line says how to mend it."""

import csv
import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

from tasks.config.values import FORBIDDEN

DEEPEST = 100


@dataclass(frozen=True)
class Row:
    """A row as it stands in the file, and the line where it begins."""

    line: int
    values: Mapping[str, Any]


@dataclass(frozen=True)
class LineError:
    """A line that cannot be stored, and how to mend it."""

    line: int
    message: str


class FileError(ValueError):
    """The whole file cannot be read; the message says why."""


class BadRow(ValueError):
    """One row cannot be read; the message says why."""


def unpacked_lines(file: BufferedReader, longest: int) -> Iterator[bytes]:
    """The lines of a plain or gzip file, cut after `longest` bytes. Raises FileError."""
    is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
    unpacked = gzip.GzipFile(fileobj=file) if is_gzip else file
    number = 0
    try:
        while line := unpacked.readline(longest):
            number += 1
            yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FileError(f"Damaged gzip after line {number} ({error}); pack it again.") from None


def read_jsonl(lines: Iterable[bytes]) -> Iterator[Row | LineError]:
    """The object on each line; blank lines are left out."""
    for line, raw in enumerate(lines, 1):
        try:
            text = _text(raw, first=line == 1)
            if text.strip():
                yield Row(line, _object(text))
        except BadRow as error:
            yield LineError(line, str(error))


def read_texts(lines: Iterable[bytes], name: str) -> Iterator[Row | LineError]:
    """The text on each line, as the value `name`; blank lines are left out."""
    for line, raw in enumerate(lines, 1):
        try:
            text = _text(raw, first=line == 1).strip()
        except BadRow as error:
            yield LineError(line, str(error))
            continue
        if text:
            yield Row(line, {name: text})


def strict_json(text: str) -> Any:
    """JSON with no key twice and no NaN; raises BadRow."""
    try:
        return json.loads(
            text, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_whole
        )
    except json.JSONDecodeError as error:
        reason = f"not JSON at character {error.colno} ({error.msg}); write one {{…}} a line"
        raise BadRow(reason) from None
    except RecursionError:
        raise BadRow("brackets within brackets too many times; nest less deeply") from None


def read_csv(
    lines: Iterable[bytes],
    header_of: Callable[[list[str]], list[str]],
    value_of: Callable[[str, str], Any],
    delimiter: str = ",",
) -> Iterator[Row | LineError]:
    """Rows of a CSV file; what breaks the format itself is the last thing reported.

    header_of: the names, from the cells of the first line. value_of: of a name and its filled
    cell. Both raise BadRow.
    """
    bad: set[int] = set()
    reader = csv.reader(_decoded(lines, bad), delimiter=delimiter, strict=True)
    start = 1
    header: list[str] | None = None
    try:
        for cells in reader:
            line, start = start, reader.line_num + 1
            if any(number in bad for number in range(line, start)):
                yield LineError(line, "not UTF-8; save the file as UTF-8")
                if header is None:
                    return
            elif header is None:
                header = header_of(cells)
            elif any(cells):
                yield table_row(line, header, cells, value_of)
    except BadRow as error:
        yield LineError(1, str(error))
    except csv.Error as error:
        yield LineError(start, f"not CSV ({error}); is a quote left open? Nothing after it is read")


def unstorable(value: Any, deepest: int = DEEPEST) -> str | None:
    """Why a database could not keep a value that JSON allows."""
    level = [value]
    for _ in range(deepest):
        inside: list[Any] = []
        for one in level:
            if isinstance(one, str) and FORBIDDEN.search(one):
                return "a control character or half a character; delete it"
            if isinstance(one, float) and not math.isfinite(one):
                return "a number that is too large; use a smaller one"
            if isinstance(one, Mapping):
                inside += [*one.keys(), *one.values()]
            elif isinstance(one, list):
                inside += one
        level = inside
    return f"values more than {deepest} levels deep; nest less deeply" if level else None


def _text(raw: bytes, *, first: bool) -> str:
    """A line as text, without the mark that some programs put first; raises BadRow."""
    try:
        return raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError:
        raise BadRow("not UTF-8; save the file as UTF-8") from None


def _object(text: str) -> dict[str, Any]:
    value = strict_json(text)
    if not isinstance(value, dict):
        raise BadRow("not an object; write one {…} a line")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadRow(f"`{twice}` is there twice; remove one of the two")
    return result


def _whole(digits: str) -> int:
    """A whole number of 64 bits at most, as files and databases keep them."""
    if len(digits) > 20 or abs(int(digits)) >= 2**63:
        raise BadRow("a number with too many digits; shorten it")
    return int(digits)


def _no_constant(word: str) -> Any:
    raise BadRow(f"{word} is no number in JSON; write a number or null")


def _decoded(lines: Iterable[bytes], bad: set[int]) -> Iterator[str]:
    for line, raw in enumerate(lines, 1):
        try:
            yield _text(raw, first=line == 1)
        except BadRow:
            bad.add(line)
            yield raw.decode("utf-8", "replace")


def table_row(
    line: int, header: list[str], cells: list[str], value_of: Callable[[str, str], Any]
) -> Row | LineError:
    """A row of a table by its header; empty cells are left out. value_of: as in `read_csv`."""
    if len(cells) != len(header):
        counts = f"{len(cells)} cells, but the header has {len(header)}"
        return LineError(line, f"{counts}; put texts with commas in quotes")
    values = {}
    for name, cell in zip(header, cells, strict=True):
        if cell.strip():
            try:
                values[name] = value_of(name, cell)
            except BadRow as error:
                return LineError(line, f"`{name}`: {error}")
    return Row(line, values)
