"""Read files of contexts line by line: rows that fit the configuration, or errors.

A JSONL line is an object with the context fields and an optional `tag` and `metadata`. CSV, TSV and
spreadsheet files have the same names in their header. In a plain text, each line is a context. A
picture or recording is given by the name of a file in the archive, with its description in
`<name>_alt`. A stored file is given as `{digest, alt}`. No database.
"""

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

from core.text.words import compose_value
from tasks.config.components import FIELD_TYPES, Component, FieldType, list_names
from tasks.config.parsing import suggest_nearest
from tasks.config.values import find_value_errors, is_empty, normalise_values
from tasks.contexts.columns import (
    Fields,
    Matching,
    list_column_names,
    list_required_fields,
    map_descriptions,
    read_columns,
)
from tasks.contexts.spreadsheets import SPREADSHEET_ENDINGS, read_first_sheet, read_sheet
from tasks.line_files import (
    MAX_PROBLEMS,
    BadRow,
    FileError,
    LineError,
    Row,
    TooManyBadLines,
    find_unstorable_reason,
    get_ending,
    iter_plain_lines,
    parse_strict_json,
    read_jsonl,
    read_texts,
    unpack,
)
from tasks.table_files import DELIMITERS, read_table

MAX_TAG_CHARS = 100
MAX_UNPACKED_BYTES = 64 * 2**20
"""The maximum size of a file after unpacking it with gzip."""
MAX_LISTED_PROBLEMS = 200  # errors and duplicates that are named one by one
MAX_BINS = 10


@dataclass(frozen=True)
class Duplicate:
    """A valid row that repeats an earlier row, or a context that the round already has.

    line: the row's line number. of: the line number of the earlier row; None if the round already
    has the context.
    """

    line: int
    of: int | None

    @property
    def message(self) -> str:
        """Return a message that says where the first copy is."""
        if self.of:
            return f"the same as line {self.of}"
        return "the round has it already"


class MediaFiles:
    """The files that rows can refer to. This base class has only stored files, by digest."""

    def __init__(
        self, stored_values: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    ) -> None:
        self._stored = stored_values
        self.decoded_values: dict[str, Mapping[str, Any]] = {}

    def find_named_value(self, component: Component, name: str) -> Mapping[str, Any]:
        """Return the value, without description, for a file that a row names. Raises BadRow.

        This base class has no named files, and always raises it.
        """
        if name.startswith(("http://", "https://")):
            raise BadRow(
                "pages here don't show files of other hosts, so links don't work; import a .zip "
                "archive that contains the files and this table"
            )
        raise BadRow("to name files, import a .zip archive that contains them and this table")

    def find_values(self, values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return those values of a row that are pictures or recordings."""
        media_values = []
        for value in values.values():
            if isinstance(value, Mapping) and "digest" in value:
                media_values.append(value)
        return media_values

    def complete_value(self, component: Component, value: Any, description: Any) -> Any:
        """Return a field's value in its stored form. Raises BadRow.

        description: the description of a picture or recording.
        """
        if isinstance(value, str) and value:
            return {**self.find_named_value(component, value), "alt": description or ""}
        if isinstance(value, Mapping) and value.get("digest") in self._stored:
            return {**self._stored[value["digest"]], "alt": value.get("alt") or description or ""}
        return value


NO_FILES = MediaFiles()
"""An instance without any files."""


def hash_context(fields: Mapping[str, Any]) -> str:
    """Return a hash of the fields, 32 hex digits, that does not depend on their order."""
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def read_rows(
    lines: Iterable[bytes],
    name: str,
    config: Fields,
    files: MediaFiles = NO_FILES,
    matching: Matching | None = None,
) -> Iterator[Row | LineError]:
    """Yield each row of the file, valid or not, in order. Blank lines are skipped.

    name: the file name, whose ending decides the format. matching: None if the columns are named
    like fields. Raises FileError on the first `next`.
    """
    # By the name, since a table of one column looks like a plain text.
    ending = get_ending(name)
    if ending in ("jsonl", "ndjson"):
        rows = read_jsonl(iter_plain_lines(lines))
    elif ending == "txt":
        rows = read_texts(iter_plain_lines(lines), _find_only_text(config))
    elif ending in DELIMITERS:
        row_reader = partial(read_table, iter_plain_lines(lines), ending=ending)
        rows = _read_table(row_reader, config, matching)
    elif ending in SPREADSHEET_ENDINGS:
        rows = _read_table(partial(read_sheet, read_first_sheet(b"".join(lines))), config, matching)
    else:
        raise FileError(
            f"{name}: name the file .jsonl, .csv, .tsv, .xlsx, .xls, .ods or .txt, by its format."
        )
    for row in rows:
        yield (
            _convert_row(_rename_columns(row, matching), config, files)
            if isinstance(row, Row)
            else row
        )


def _read_table(
    row_reader: Callable[..., Iterator[Row | LineError]], config: Fields, matching: Matching | None
) -> Iterator[Row | LineError]:
    field_types = {component.name: component.kind for component in config.context}
    field_types |= dict.fromkeys(["tag", *map_descriptions(config).values()], FIELD_TYPES["text"])

    def parse_column_cell(column: str, cell: str) -> Any:
        if matching is None:
            return _parse_cell(cell, field_types.get(column))
        if column in matching:
            return _parse_cell(cell, field_types.get(matching[column]))
        return cell

    return row_reader(lambda cells: _read_header(cells, config, matching), parse_column_cell)


def _rename_columns(row: Row, matching: Matching | None) -> Row:
    """Return the row with field names instead of column names, without unmatched columns."""
    if matching is None:
        return row
    return Row(
        row.line, {matching[name]: value for name, value in row.values.items() if name in matching}
    )


def _find_only_text(config: Fields) -> str:
    """Return the name of the only required field, which must be a text. Raises FileError."""
    required_components = []
    for component in config.context:
        if component.required:
            required_components.append(component)
    if len(required_components) != 1 or not required_components[0].kind.is_text:
        raise FileError("a plain text fits a task whose contexts are one text; use a table here")
    return required_components[0].name


def read_new_rows(
    lines: Iterable[bytes],
    name: str,
    config: Fields,
    stored_digests: Collection[str],
    files: MediaFiles = NO_FILES,
    matching: Matching | None = None,
) -> Iterator[Row | LineError | Duplicate]:
    """Yield the rows of `read_rows`, but a Duplicate for each valid row that is not new.

    stored_digests: digests of the contexts that exist already.
    """
    lines_by_digest: dict[str, int] = {}
    names = set(list_names(config.context))
    for row in read_rows(lines, name, config, files, matching):
        if isinstance(row, LineError):
            yield row
            continue
        # Of the fields only, as contexts are stored.
        digest = hash_context({key: row.values[key] for key in names & row.values.keys()})
        if digest in stored_digests or digest in lines_by_digest:
            yield Duplicate(row.line, None if digest in stored_digests else lines_by_digest[digest])
            continue
        lines_by_digest[digest] = row.line
        yield row


@dataclass
class Summary:
    """The result of reading a file, with at most MAX_LISTED_PROBLEMS errors and duplicates."""

    rows: list[Row] = field(default_factory=list)
    """The valid new rows."""
    lengths: list[int] = field(default_factory=list)
    """The number of characters in the texts of each of these rows."""
    errors: list[LineError] = field(default_factory=list)
    error_count: int = 0
    duplicates: list[Duplicate] = field(default_factory=list)
    duplicate_count: int = 0
    stored_count: int = 0
    columns: list[str] = field(default_factory=list)
    """The column names in the file; empty for a plain text."""
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """For an archive: the values, by digest, of the files that the valid rows name."""
    folder: Path | None = None
    """The folder with these files in their stored form, which is deleted with this object."""

    @property
    def new_count(self) -> int:
        """Return the number of valid new rows."""
        return len(self.rows)

    @property
    def row_count(self) -> int:
        """Return the number of all rows, valid or not."""
        return self.new_count + self.error_count + self.duplicate_count


def summarise_file(
    data: bytes,
    name: str,
    config: Fields,
    stored_digests: Collection[str],
    files: MediaFiles = NO_FILES,
    matching: Matching | None = None,
) -> Summary:
    """Return the summary of a file: the rows that it would add, its errors and its duplicates.

    data: may be compressed with gzip. stored_digests: digests of the contexts that exist already.
    Raises FileError, or TooManyBadLines at MAX_PROBLEMS errors and duplicates.
    """
    # 1. Unpack it, up to a limit.
    data = unpack(data, MAX_UNPACKED_BYTES)
    # 2. Note its columns, from which people match fields.
    summary = Summary(columns=read_columns(data, name))
    text_field_names = []
    for component in config.context:
        if component.kind.is_text:
            text_field_names.append(component.name)
    # 3. Read it line by line, and sort lines into new, wrong and known ones.
    for item in read_new_rows(BytesIO(data), name, config, stored_digests, files, matching):
        if isinstance(item, LineError):
            summary.error_count += 1
            if len(summary.errors) < MAX_LISTED_PROBLEMS:
                summary.errors.append(item)
        elif isinstance(item, Duplicate):
            summary.duplicate_count += 1
            if len(summary.duplicates) < MAX_LISTED_PROBLEMS:
                summary.duplicates.append(item)
        else:
            summary.rows.append(item)
            summary.lengths.append(
                sum(len(item.values.get(text) or "") for text in text_field_names)
            )
            continue
        # 4. Give up where so many lines are wrong that the file must be another one.
        if summary.error_count + summary.duplicate_count == MAX_PROBLEMS:
            raise TooManyBadLines(item.line, item.message)
    return summary


def build_histogram(lengths: Collection[int]) -> list[tuple[int, int, int]]:
    """Return at most MAX_BINS ranges of equal width that cover all lengths.

    Each range is (first, last, count).
    """
    if not lengths:
        return []
    min_length, max_length = min(lengths), max(lengths)
    # Whole numbers, so that the edges of the ranges are lengths themselves.
    width = math.ceil((max_length - min_length + 1) / MAX_BINS)
    bin_counts = [0] * math.ceil((max_length - min_length + 1) / width)
    for length in lengths:
        bin_counts[(length - min_length) // width] += 1
    ranges = []
    for index, count in enumerate(bin_counts):
        first = min_length + index * width
        ranges.append((first, first + width - 1, count))
    return ranges


def _read_header(cells: list[str], config: Fields, matching: Matching | None) -> list[str]:
    """Return the column names in the first line. Raises BadRow if they do not fit the fields."""
    names = [cell.strip() for cell in cells]
    known_names = list_column_names(config) if matching is None else list(matching)
    for name in names:
        if matching is None and name not in known_names:
            raise BadRow(_describe_unknown_name(name, known_names))
        if name in known_names and names.count(name) > 1:
            raise BadRow(f"the column `{name}` is there twice; remove one of the two")
    if matching is None:
        for name in list_required_fields(config):
            if name not in names:
                raise BadRow(f"the column `{name}` is missing; add it")
    return names


def _parse_cell(cell: str, kind: FieldType | None) -> Any:
    """Return the value of a cell. Cells of all types but plain text are parsed as JSON.

    Raises BadRow.
    """
    cell_type = "json"
    if kind:
        cell_type = kind.cell_type
    if kind and kind.element != "text" and cell.startswith("{"):
        cell_type = "json"  # a stored file, by its digest
    if cell_type == "text":
        return cell
    value = parse_strict_json(cell)
    if cell_type == "number" and not isinstance(value, int | float):
        raise BadRow("not a number; write one such as 3 or 0.5")
    return value


def _describe_unknown_name(name: str, known_names: list[str]) -> str:
    return f"there is no field `{name}`; {suggest_nearest(name, known_names)}"


def _convert_row(row: Row, config: Fields, files: MediaFiles) -> Row | LineError:
    """Return the row in its stored form, or an error that lists its problems."""
    known_names = list_column_names(config)
    # All unknown names at once, so that a file is corrected in one go.
    problems = [
        _describe_unknown_name(name, known_names) for name in row.values if name not in known_names
    ]
    values = dict(row.values)
    # 1. Join each file with its description, which a table has in a column of its own.
    for name, description_column in map_descriptions(config).items():
        description = values.pop(description_column, "")
        try:
            if name in values:
                values[name] = files.complete_value(
                    config.get_component(name), values[name], description
                )
        except BadRow as error:
            return LineError(row.line, f"`{name}`: {error}")
    row = Row(
        row.line, normalise_values(config.context, compose_value(values, _list_texts(values)))
    )
    # 2. Check tag and metadata, which every task has.
    problems += _find_extra_column_problems(row.values)
    # 3. Check each field by its type.
    for component in config.context:
        value = row.values.get(component.name)
        if is_empty(value):
            if component.required:
                problems.append(f"`{component.name}` is missing; add it")
        else:
            messages = find_value_errors(component, value, row.values)
            problems += [f"`{component.name}`: {message}" for message in messages]
    # 4. At last what no database could store, which other checks would have named better.
    if not problems and (reason := find_unstorable_reason(row.values)):
        problems.append(reason)
    if problems:
        return LineError(row.line, "; also: ".join(problems))
    return row


def _list_texts(values: Mapping[str, Any]) -> list[str]:
    return [value for value in values.values() if isinstance(value, str)]


def _find_extra_column_problems(values: Mapping[str, Any]) -> list[str]:
    problems = []
    tag, metadata = values.get("tag"), values.get("metadata")
    if tag is not None and not isinstance(tag, str):
        problems.append("`tag` is not a text; write it in quotes")
    elif tag and len(tag) > MAX_TAG_CHARS:
        problems.append(f"`tag` has {len(tag)} characters; use at most {MAX_TAG_CHARS}")
    if metadata is not None and not isinstance(metadata, dict):
        problems.append('`metadata` is not an object; write {"key": "value"}')
    return problems
