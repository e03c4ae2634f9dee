"""The field of its task for each column of an import. Pure."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tasks.config.checks import RESERVED_NAMES
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.config.values import check_value
from tasks.line_files import BadRow
from validation.imports.rows import HistoryRow

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
# Names have at most 60; the rest is for “column_” and a number.
LONGEST = 50
LONGEST_TITLE = 200
_TALK = Component(name="talk", type="chat")
Group = tuple[str, str]
"""Whether a column is of the context or of the input, and its name."""


class NewFields:
    """The fields that an import creates, one for each column, in order of first occurrence.

    A column whose name is not a valid field name gets another name, and its own name as title.
    """

    def __init__(self, answer: str):
        self._taken = {*RESERVED_NAMES, answer}
        self._names: dict[Group, str] = {}
        self.unknown: Counter[str] = Counter()
        self._talks: dict[str, bool] = {}

    def fitted(self, row: HistoryRow) -> HistoryRow:
        """Return the row with its columns renamed to fields."""
        context = self._named("context", row.context)
        for name, value in context.items():
            # One row that is no conversation makes the column a text.
            self._talks[name] = self._talks.get(name, True) and _is_talk(value)
        inputs = self._named("input", row.input)
        return row.model_copy(update={"context": context, "input": inputs})

    def of(self, group: str) -> dict[str, str]:
        """Return the column of each field of the context or of the input."""
        return {name: column for (place, column), name in self._names.items() if place == group}

    @property
    def talks(self) -> set[str]:
        """Return the context fields that contain a conversation in every row."""
        return {name for name, is_talk in self._talks.items() if is_talk}

    @property
    def renamed(self) -> dict[str, str]:
        """Return the columns whose field has another name."""
        return {column: name for (_, column), name in self._names.items() if column != name}

    def _named(self, group: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values by field name, as texts; null is an empty cell."""
        fields: dict[str, Any] = {}
        for column, value in values.items():
            name = self._name(group, column)
            if value is not None:
                is_number = isinstance(value, bool | int | float)
                fields[name] = json.dumps(value) if is_number else value
        return fields

    def _name(self, group: str, column: str) -> str:
        if (group, column) not in self._names:
            self._names[group, column] = name = field_name(column, self._taken)
            self._taken.add(name)
        return self._names[group, column]


class KnownFields:
    """The fields of an existing task.

    is_strict: people judge the rows, so a column that is no field is refused. Otherwise such a
    column is stored with the row but never shown, and its rows are counted in `unknown`.
    """

    def __init__(self, config: TaskConfig, *, is_strict: bool):
        self._config, self._is_strict = config, is_strict
        self.unknown: Counter[str] = Counter()
        self._context = {component.name for component in config.context}
        others = (*config.input, *config.output, *config.metadata.create)
        self._input = {component.name for component in others} - self._context
        # An import that made the task gave fields their columns' names as titles.
        self._titles = {
            component.label[:LONGEST_TITLE]: component.name
            for component in (*config.context, *config.input)
            if component.label
        }
        self.renamed: dict[str, str] = {}

    def fitted(self, row: HistoryRow) -> HistoryRow:
        """Return the row with each column under its field's name, in that field's group.

        Raises BadRow.
        """
        context: dict[str, Any] = {}
        inputs: dict[str, Any] = {}
        for column, value in (*row.context.items(), *row.input.items()):
            name = self._name(column)
            values = context if name in self._context else inputs
            if name in values:
                raise BadRow(f"`{name}` stands twice, in context and in input; leave one out")
            values[name] = value
        fitted_row = row.model_copy(update={"context": context, "input": inputs})
        if wrong := _wrong_talk(self._config, fitted_row):
            raise BadRow(wrong)
        return fitted_row

    def _name(self, column: str) -> str:
        if column in self._context or column in self._input:
            return column
        name = self._titles.get(column[:LONGEST_TITLE])
        if name is None and not self._is_strict:
            self.unknown[column] += 1
            return column
        if name is None:
            fields = ", ".join((*self._context, *self._input))
            raise BadRow(
                f"the task has no field `{column}`; it has {fields}. Rename the column, leave it "
                "out, or import into a new task with --create"
            )
        self.renamed[column] = name
        return name


def field_name(column: str, taken_names: Iterable[str]) -> str:
    """Return a column's name as a field: unchanged, or its Latin letters and a number."""
    if _NAME.fullmatch(column) and column not in taken_names:
        return column
    # Takes accents off their letters, to leave them out.
    plain = unicodedata.normalize("NFKD", column).encode("ascii", "ignore").decode()
    base = re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")[:LONGEST].strip("_")
    if not base[:1].isalpha() or base in taken_names:
        base = f"column_{base}".strip("_")
    name, number = base, 1
    while name in taken_names:
        number += 1
        name = f"{base}_{number}"
    return name


def titled(name: str, column: str) -> Mapping[str, str]:
    """Return the title of a field: its column's name if that differs."""
    title = column.strip()[:LONGEST_TITLE]
    return {"label": title} if title and column != name else {}


def _is_talk(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and not check_value(_TALK, value, {})


def _wrong_talk(config: TaskConfig, row: HistoryRow) -> str:
    """Return why a conversation of the row is invalid; empty if all are valid."""
    groups = (("context", config.context, row.context), ("input", config.input, row.input))
    for place, components, values in groups:
        for component in components:
            if component.type == "chat" and component.name in values:
                for wrong in check_value(component, values[component.name], {}):
                    return f"{place}.{component.name}: {wrong}"
    return ""
