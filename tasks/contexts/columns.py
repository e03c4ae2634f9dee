"""Find out which field each column of a file of contexts fills. No database."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tasks.config.components import Component, list_names, map_by_name
from tasks.contexts.spreadsheets import SPREADSHEET_ENDINGS, read_first_sheet
from tasks.line_files import FileError, Row, get_ending, iter_plain_lines, read_jsonl
from tasks.table_files import DELIMITERS, read_table

EXTRA_COLUMNS = ("tag", "metadata")
MAX_COLUMNS = 100

Matching = Mapping[str, str]
"""The field that each column fills, by column. Columns that are missing here are ignored."""


class Fields(Protocol):
    """The fields that columns can fill: the context of a configuration, or other fields."""

    @property
    def context(self) -> Sequence[Component]: ...

    def get_component(self, name: str) -> Component:
        """Return the field with this name. Raises KeyError."""


@dataclass(frozen=True)
class OtherFields:
    """Fields that columns can fill and that are not the context of a configuration."""

    context: tuple[Component, ...]

    def get_component(self, name: str) -> Component:
        """Return the field with this name. Raises KeyError."""
        return map_by_name(self.context)[name]


def map_descriptions(config: Fields) -> dict[str, str]:
    """Return the description column of each picture or recording, by the field's name."""
    names = {}
    for component in config.context:
        if component.is_media:
            names[component.name] = f"{component.name}_alt"
    return names


def list_column_names(config: Fields) -> list[str]:
    """Return all column names that a row of contexts may have."""
    names = list(list_names(config.context))
    names += map_descriptions(config).values()
    names += EXTRA_COLUMNS
    return names


def list_required_fields(config: Fields) -> list[str]:
    """Return the names of the fields that every row must fill."""
    return [component.name for component in config.context if component.required]


def read_columns(data: bytes, name: str) -> list[str]:
    """Return a table's header, or every key that occurs in a JSONL file; empty for plain text.

    name: the file name, whose ending decides the format. Raises FileError for more than MAX_COLUMNS
    columns.
    """
    names: dict[str, None] = {}

    def note_columns(cells: Collection[str]) -> list[str]:
        names.update(dict.fromkeys(cell.strip() for cell in cells))
        return []

    ending = get_ending(name)
    if ending in DELIMITERS:
        next(
            read_table(iter_plain_lines([data]), note_columns, lambda name, cell: cell, ending),
            None,
        )
    elif ending in SPREADSHEET_ENDINGS:
        note_columns(next(iter(read_first_sheet(data)), []))
    elif ending in ("jsonl", "ndjson"):
        for row in read_jsonl(iter_plain_lines([data])):
            if isinstance(row, Row):
                names.update(dict.fromkeys(row.values))
    if len(names) > MAX_COLUMNS:
        raise FileError(
            f"The file has more than {MAX_COLUMNS} columns. Delete columns that aren't context."
        )
    return [column for column in names if column]


def are_field_names(columns: Collection[str], config: Fields) -> bool:
    """Return whether every column is named like a field and no required field is missing."""
    return set(list_required_fields(config)) <= set(columns) <= set(list_column_names(config))


def guess_matching(columns: Collection[str], config: Fields) -> Matching:
    """Return a guess at which field each column fills.

    Case, spaces and punctuation of names are ignored. If a single required field and a single
    column remain, they are matched.
    """
    fields = list_column_names(config)
    fields_by_name = {_normalise_name(field): field for field in fields}
    fields_by_column: dict[str, str] = {}
    for column in sorted(
        columns, key=lambda column_name: column_name not in fields
    ):  # same names first
        field: str | None = column
        if column not in fields:
            field = fields_by_name.get(_normalise_name(column))
        if field and field not in fields_by_column.values():
            fields_by_column[column] = field
    # One column and one field are left: people named the text in their own way.
    missing_fields = []
    for field in list_required_fields(config):
        if field not in fields_by_column.values():
            missing_fields.append(field)
    unmatched_columns = []
    for column in columns:
        if column not in fields_by_column:
            unmatched_columns.append(column)
    if len(missing_fields) == len(unmatched_columns) == 1:
        fields_by_column[unmatched_columns[0]] = missing_fields[0]
    return fields_by_column


def _normalise_name(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
