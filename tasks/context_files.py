"""Files of contexts, JSONL or CSV, line by line: rows that fit the configuration, or what is wrong.

A JSONL line is the context fields flat, with an optional `tag` and `metadata`; a CSV file has the
same names in its header. Nothing here knows the database.
"""

import csv
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.config_io import nearest
from tasks.schema import TaskConfig
from tasks.values import FORBIDDEN, check_value

EXTRA = ("tag", "metadata")
TAG_LENGTH = 100
SHOWN = 20  # rows of a preview
LISTED = 200  # errors and duplicates that are named one by one
BINS = 10
NUMBERS = ("number", "slider")
TEXTS = ("text", "long_text")
PLAIN = (*TEXTS, "image", "audio", "multiclass")  # what a CSV cell holds as it stands


@dataclass(frozen=True)
class Row:
    """A good row: what is stored, and the line where it begins."""

    line: int
    values: Mapping[str, Any]


@dataclass(frozen=True)
class LineError:
    """A line that cannot be stored, and how to mend it."""

    line: int
    message: str


@dataclass(frozen=True)
class Duplicate:
    """A good row that is there already: on line `of` of the file, or (None) in the round."""

    line: int
    of: int | None

    @property
    def message(self) -> str:
        """Where the first one is."""
        return f"the same as line {self.of}" if self.of else "the round has it already"


class FileError(ValueError):
    """The whole file cannot be read; the message says why."""


class _BadRow(ValueError):
    """One row cannot be read; the message says why."""


def read_rows(lines: Iterable[bytes], name: str, config: TaskConfig) -> Iterator[Row | LineError]:
    """Each row of the file, good or bad, in order; blank lines are left out.

    The end of `name` says which format it is. Raises FileError on the first `next`.
    """
    ending = name.lower().rpartition(".")[2]
    if ending in ("jsonl", "ndjson"):
        rows = _read_jsonl(lines)
    elif ending == "csv":
        rows = _read_csv(lines, config)
    else:
        raise FileError(f"{name}: name the file .jsonl or .csv, after what is in it.")
    for row in rows:
        yield _checked(row, config) if isinstance(row, Row) else row


def read_new(
    lines: Iterable[bytes],
    name: str,
    config: TaskConfig,
    *,
    digest_of: Callable[[dict[str, Any]], str],
    stored: Collection[str],
) -> Iterator[Row | LineError | Duplicate]:
    """As `read_rows`, with rows whose fields came before, or are `stored` by digest, marked."""
    seen: dict[str, int] = {}
    names = {component.name for component in config.context}
    for row in read_rows(lines, name, config):
        if isinstance(row, LineError):
            yield row
            continue
        digest = digest_of({key: value for key, value in row.values.items() if key in names})
        if digest in stored or digest in seen:
            yield Duplicate(row.line, None if digest in stored else seen[digest])
            continue
        seen[digest] = row.line
        yield row


@dataclass
class Summary:
    """What a file holds; of errors and duplicates only the first LISTED are kept."""

    new: int = 0
    error_count: int = 0
    duplicate_count: int = 0
    rows: list[Row] = field(default_factory=list)
    errors: list[LineError] = field(default_factory=list)
    duplicates: list[Duplicate] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    @property
    def row_count(self) -> int:
        """All rows, good or bad."""
        return self.new + self.error_count + self.duplicate_count

    def add(self, item: Row | LineError | Duplicate, text_fields: Collection[str]) -> None:
        """Count one row; `text_fields` are those whose characters are its length."""
        if isinstance(item, LineError):
            self.error_count += 1
            self.errors += [item] if len(self.errors) < LISTED else []
        elif isinstance(item, Duplicate):
            self.duplicate_count += 1
            self.duplicates += [item] if len(self.duplicates) < LISTED else []
        else:
            self.new += 1
            self.rows += [item] if len(self.rows) < SHOWN else []
            self.lengths.append(sum(len(item.values.get(name) or "") for name in text_fields))


def summarize(items: Iterable[Row | LineError | Duplicate], config: TaskConfig) -> Summary:
    """Read everything once and keep little of it. Raises FileError."""
    summary = Summary()
    text_fields = [component.name for component in config.context if component.type in TEXTS]
    for item in items:
        summary.add(item, text_fields)
    return summary


def histogram(lengths: Collection[int]) -> list[tuple[int, int, int]]:
    """At most BINS equal ranges that cover all lengths: (first, last, how many)."""
    if not lengths:
        return []
    low, high = min(lengths), max(lengths)
    width = math.ceil((high - low + 1) / BINS)
    counts = [0] * math.ceil((high - low + 1) / width)
    for length in lengths:
        counts[(length - low) // width] += 1
    return [
        (low + place * width, low + (place + 1) * width - 1, count)
        for place, count in enumerate(counts)
    ]


def _text(raw: bytes, *, first: bool) -> str:
    """A line as text, without the mark that some programs put first; raises _BadRow."""
    try:
        return raw.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError:
        raise _BadRow("not UTF-8; save the file as UTF-8") from None


def _read_jsonl(lines: Iterable[bytes]) -> Iterator[Row | LineError]:
    for line, raw in enumerate(lines, 1):
        try:
            text = _text(raw, first=line == 1)
            if text.strip():
                yield Row(line, _object(text))
        except _BadRow as error:
            yield LineError(line, str(error))


def _object(text: str) -> dict[str, Any]:
    value = _json(text)
    if not isinstance(value, dict):
        raise _BadRow("not an object; write one {…} a line")
    return value


def _json(text: str) -> Any:
    """Strict JSON: no key twice, no NaN; raises _BadRow."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        reason = f"not JSON at character {error.colno} ({error.msg}); write one {{…}} a line"
        raise _BadRow(reason) from None
    except RecursionError:
        raise _BadRow("brackets within brackets too many times; nest less deeply") from None
    except _BadRow:
        raise
    except ValueError:  # Python reads no integers of more than 4300 digits
        raise _BadRow("a number with too many digits; shorten it") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _BadRow(f"`{twice}` is there twice; remove one of the two")
    return result


def _no_constant(word: str) -> Any:
    raise _BadRow(f"{word} is no number in JSON; write a number or null")


def _read_csv(lines: Iterable[bytes], config: TaskConfig) -> Iterator[Row | LineError]:
    """Rows of a CSV file; what breaks the format itself is the last thing reported."""
    bad: set[int] = set()
    reader = csv.reader(_decoded(lines, bad), strict=True)
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
                header = _header(cells, config)
            elif any(cells):
                yield _csv_row(line, header, cells, config)
    except _BadRow as error:
        yield LineError(1, str(error))
    except csv.Error as error:
        yield LineError(start, f"not CSV ({error}); is a quote left open? Nothing after it is read")


def _decoded(lines: Iterable[bytes], bad: set[int]) -> Iterator[str]:
    for line, raw in enumerate(lines, 1):
        try:
            yield _text(raw, first=line == 1)
        except _BadRow:
            bad.add(line)
            yield raw.decode("utf-8", "replace")


def _header(cells: list[str], config: TaskConfig) -> list[str]:
    """The names in the first line; raises _BadRow."""
    names = [cell.strip() for cell in cells]
    known = _known(config)
    if len(names) == 1 and names[0] not in known and set(names[0]) & {";", "\t"}:
        raise _BadRow("the header is one single name; separate columns by commas")
    for name in names:
        if name not in known:
            raise _BadRow(f"there is no field `{name}`; {nearest(name, known)}")
        if names.count(name) > 1:
            raise _BadRow(f"the column `{name}` is there twice; remove one of the two")
    for component in config.context:
        if component.required and component.name not in names:
            raise _BadRow(f"the column `{component.name}` is missing; add it")
    return names


def _csv_row(line: int, header: list[str], cells: list[str], config: TaskConfig) -> Row | LineError:
    if len(cells) != len(header):
        counts = f"{len(cells)} cells, but the header has {len(header)}"
        return LineError(line, f"{counts}; put texts with commas in quotes")
    kinds = {component.name: component.type for component in config.context}
    values = {}
    for name, cell in zip(header, cells, strict=True):
        if cell.strip():
            try:
                values[name] = _cell(cell, "text" if name == "tag" else kinds.get(name))
            except _BadRow as error:
                return LineError(line, f"`{name}`: {error}")
    return Row(line, values)


def _cell(cell: str, kind: str | None) -> Any:
    """A cell as the value of a field; what is no plain text or number is written as JSON."""
    if kind in PLAIN:
        return cell
    value = _json(cell)
    if kind in NUMBERS and not isinstance(value, int | float):
        raise _BadRow("not a number; write one such as 3 or 0.5")
    return value


def _known(config: TaskConfig) -> list[str]:
    return [*(component.name for component in config.context), *EXTRA]


def _checked(row: Row, config: TaskConfig) -> Row | LineError:
    """The row, if it fits the configuration."""
    problems = [*_key_problems(row.values, config), *_extra_problems(row.values)]
    for component in config.context:
        value = row.values.get(component.name)
        if value in (None, "", [], {}) or (isinstance(value, str) and not value.strip()):
            if component.required:
                problems.append(f"`{component.name}` is missing; add it")
        else:
            found = check_value(component, value, row.values)
            problems += [f"`{component.name}`: {message}" for message in found]
    if not problems and (reason := _unstorable(row.values)):
        problems.append(reason)
    return LineError(row.line, "; also: ".join(problems)) if problems else row


def _key_problems(values: Mapping[str, Any], config: TaskConfig) -> list[str]:
    known = _known(config)
    return [
        f"there is no field `{name}`; {nearest(name, known)}"
        for name in values
        if name not in known
    ]


def _extra_problems(values: Mapping[str, Any]) -> list[str]:
    problems = []
    tag, metadata = values.get("tag"), values.get("metadata")
    if tag is not None and not isinstance(tag, str):
        problems.append("`tag` is not a text; write it in quotes")
    elif tag and len(tag) > TAG_LENGTH:
        problems.append(f"`tag` has {len(tag)} characters; use at most {TAG_LENGTH}")
    if metadata is not None and not isinstance(metadata, dict):
        problems.append('`metadata` is not an object; write {"key": "value"}')
    return problems


def _unstorable(value: Any) -> str | None:
    """Why a database could not keep a value that JSON allows."""
    if isinstance(value, str):
        broken = FORBIDDEN.search(value)
        return "a control character or half a character; delete it" if broken else None
    if isinstance(value, float):
        return None if math.isfinite(value) else "a number that is too large; use a smaller one"
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list):
        return next((reason for item in value if (reason := _unstorable(item))), None)
    return None
