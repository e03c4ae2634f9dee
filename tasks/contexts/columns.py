"""The columns of a file of contexts, and which field each of them fills. Knows no database."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tasks.config.components import Component, by_name, names_of
from tasks.contexts.spreadsheets import ENDINGS, first_sheet
from tasks.line_files import FileError, Row, ending_of, plain_lines, read_jsonl
from tasks.table_files import DELIMITERS, read_table

EXTRA = ("tag", "metadata")
MOST = 100

Matching = Mapping[str, str]
"""The field that a column fills; a column that is not named is left out."""


class Fields(Protocol):
    """What columns fill: the context fields of a configuration, or other ones."""

    @property
    def context(self) -> Sequence[Component]: ...

    def component(self, name: str) -> Component:
        """Return the field with this name. Raises KeyError."""


@dataclass(frozen=True)
class OtherFields:
    """Fields of a form that are not the context of a configuration."""

    context: tuple[Component, ...]

    def component(self, name: str) -> Component:
        """Return the field with this name. Raises KeyError."""
        return by_name(self.context)[name]


def alts(config: Fields) -> dict[str, str]:
    """Map each field of pictures or recordings to the name of its description in a row."""
    names = {}
    for component in config.context:
        if component.is_media:
            names[component.name] = f"{component.name}_alt"
    return names


def fields_of(config: Fields) -> list[str]:
    """Return all names that a row of contexts may have."""
    names = list(names_of(config.context))
    names += alts(config).values()
    names += EXTRA
    return names


def needed_fields(config: Fields) -> list[str]:
    """Return the names that every row must have."""
    return [component.name for component in config.context if component.required]


def columns_of(data: bytes, name: str) -> list[str]:
    """Return the names in the first line of a table, or in any object of JSONL; of a text none.

    Raises FileError where there are more than MOST.
    """
    names: dict[str, None] = {}

    def note(cells: Collection[str]) -> list[str]:
        names.update(dict.fromkeys(cell.strip() for cell in cells))
        return []

    ending = ending_of(name)
    if ending in DELIMITERS:
        next(read_table(plain_lines([data]), note, lambda name, cell: cell, ending), None)
    elif ending in ENDINGS:
        note(next(iter(first_sheet(data)), []))
    elif ending in ("jsonl", "ndjson"):
        for row in read_jsonl(plain_lines([data])):
            if isinstance(row, Row):
                names.update(dict.fromkeys(row.values))
    if len(names) > MOST:
        raise FileError(f"The file has more than {MOST} columns. Delete what is no context.")
    return [column for column in names if column]


def fits(columns: Collection[str], config: Fields) -> bool:
    """Return whether the columns already have the names of fields, and none is missing."""
    return set(needed_fields(config)) <= set(columns) <= set(fields_of(config))


def guess(columns: Collection[str], config: Fields) -> Matching:
    """Guess the field of each column, by names that differ only in case, spaces and signs.

    If then one needed field and one column are left, they belong together.
    """
    fields = fields_of(config)
    plain = {_plain(field): field for field in fields}
    fields_by_column: dict[str, str] = {}
    for column in sorted(
        columns, key=lambda column_name: column_name not in fields
    ):  # same names first
        field: str | None = column
        if column not in fields:
            field = plain.get(_plain(column))
        if field and field not in fields_by_column.values():
            fields_by_column[column] = field
    # One column and one field are left: people named the text in their own way.
    missing = []
    for field in needed_fields(config):
        if field not in fields_by_column.values():
            missing.append(field)
    left = []
    for column in columns:
        if column not in fields_by_column:
            left.append(column)
    if len(missing) == len(left) == 1:
        fields_by_column[left[0]] = missing[0]
    return fields_by_column


def _plain(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())
