"""Write the rows of a split as JSON lines, which forms and commands then read like any file."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.datasets.files import find_label_names, pick_split
from tasks.datasets.folder import LocalDataset, find_folder
from tasks.datasets.hub import HubDataset, PieceCache, Reference, find_dataset, parse_reference
from tasks.datasets.tables import Row, iter_rows
from tasks.formats.base import Terms
from tasks.line_files import FileError

LABEL_FIELD = "label"
MAX_COLUMNS = 100
ENDINGS_WITH_SCHEMA = (".parquet", ".arrow")
RESPONDENTS_ENDING = ".responses.users"
"""The ending of columns from Argilla's `to_datasets` with the person who gave each response."""


@dataclass(frozen=True)
class RowsQuery:
    """A request for rows of a dataset.

    source: a folder, or a hub's name or URL. rows: the maximum number; 0 for all. columns: the
    column that fills each field; empty for all columns under their own names. is_plain: whether
    lists become texts.
    """

    source: str
    revision: str = ""
    config: str = ""
    split: str = ""
    rows: int = 0
    columns: Mapping[str, str] = field(default_factory=dict)
    is_plain: bool = False


@dataclass(frozen=True)
class WrittenRows:
    """A description of the rows that were written: title, terms, number and columns."""

    title: str
    terms: Terms
    row_count: int
    columns: list[str]


def write_rows(
    query: RowsQuery, endpoint: str, pieces: PieceCache, path: Path, max_bytes: int
) -> WrittenRows:
    """Write the rows of a split to the file `path`, one JSON object per line.

    endpoint: the hub's URL; "" for a folder. pieces: the cache for a hub's files.
    max_bytes: the maximum size of the rows; 0 for no limit. Raises FileError, OSError.
    """
    source: HubDataset | LocalDataset
    config, split = query.config, query.split
    if endpoint:
        reference = parse_reference(query.source, endpoint)
        revision = query.revision or reference.revision
        config, split = config or reference.config, split or reference.split
        source = find_dataset(Reference(reference.name, revision), endpoint)
    else:
        source = find_folder(Path(query.source))
    chosen_split = pick_split(source.splits, config, split, source.name)
    columns: dict[str, None] = {}
    count = size = 0
    with path.open("wb") as lines:
        for row in _iter_rows(source, chosen_split.files, chosen_split.config, pieces):
            columns.update(dict.fromkeys(row))
            if not count and not query.columns:
                _refuse_responses(source.name, row)
            # Counted while reading, since JSON lines may bring new columns in every row.
            if len(columns) > MAX_COLUMNS:
                raise FileError(f"{source.name} has more than {MAX_COLUMNS} columns.")
            count += 1
            try:
                line = json.dumps(_choose_columns(row, query), ensure_ascii=False).encode() + b"\n"
            except UnicodeEncodeError:
                raise FileError(
                    f"{source.name}: row {count:,} contains half of a surrogate pair; write "
                    "the character."
                ) from None
            # Checked before the line is written, so that the file never grows beyond the limit.
            size += len(line)
            if max_bytes and size > max_bytes:
                limit = f"{max_bytes >> 20} MB"
                raise FileError(f"The first {count:,} rows take more than {limit}. Ask for fewer.")
            lines.write(line)
            if count == query.rows:
                break
    if missing_columns := set(query.columns.values()) - columns.keys():
        raise FileError(
            f"{source.name} has no column {', '.join(sorted(missing_columns))}. It has "
            f"{', '.join(columns) or 'none'}."
        )
    title = f"{source.name} ({chosen_split.config}, {chosen_split.split})"
    terms = Terms(source.card.license, source.card.citation, source.origin)
    return WrittenRows(title, terms, count, list(columns))


def _iter_rows(
    source: HubDataset | LocalDataset, files: list[str], config: str, pieces: PieceCache
) -> Iterator[Row]:
    """Yield the rows of all files. Raises FileError.

    Files that declare columns must all declare the same columns.
    """
    names = find_label_names(source.card, config)
    first_columns: tuple[str, set[str]] | None = None
    for file in files:
        with source.open(file, pieces) as opened_file:
            for number, row in enumerate(iter_rows(file, opened_file, names)):
                # Files of JSON or CSV do not declare columns, and may leave empty ones out.
                if not number and file.endswith(ENDINGS_WITH_SCHEMA):
                    row_columns = {column.partition(".")[0] for column in row}
                    first_columns = first_columns or (file, row_columns)
                    if row_columns != first_columns[1]:
                        first_file = first_columns[0]
                        different_columns = ", ".join(sorted(row_columns ^ first_columns[1]))
                        raise FileError(
                            f"{file} has other columns than {first_file} ({different_columns}). "
                            "Make the files alike."
                        )
                yield row


def _refuse_responses(name: str, row: Row) -> None:
    """Raise FileError for a record of Argilla, because its responses are votes."""
    if users_column := next(
        (column for column in row if column.endswith(RESPONDENTS_ENDING)), None
    ):
        responses = users_column.removesuffix(".users")
        raise FileError(
            f"{name} holds Argilla's responses ({responses}), which are votes. "
            'Write it with to_json("records.jsonl") of the data set and take that --from argilla, '
            "or choose columns with --columns."
        )


def _choose_columns(row: Row, query: RowsQuery) -> Row:
    """Return the row's fields, renamed as the query says, without missing values."""
    columns = query.columns or dict.fromkeys(row)
    values = {name: row.get(column or name) for name, column in columns.items()}
    if query.is_plain:
        values = {name: _flatten_value(name, value) for name, value in values.items()}
    return {name: value for name, value in values.items() if value is not None}


def _flatten_value(name: str, value: Any) -> Any:
    """Return a list as text, an empty list as None, and other values unchanged.

    Of a list of labels, only the first one is kept, which is the author's.
    """
    if not isinstance(value, list):
        return value
    if not value:
        return None
    if name == LABEL_FIELD:
        return str(value[0])
    if all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False)
