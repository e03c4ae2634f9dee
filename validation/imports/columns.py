"""The mapping of an import's columns to the fields of its task. Pure."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tasks.config.checks import RESERVED_NAMES
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.config.values import find_value_errors
from tasks.line_files import BadRow
from validation.imports.rows import HistoryRow

_NAME_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
# Names have at most 60; the rest is for “column_” and a number.
MAX_NAME_CHARS = 50
MAX_TITLE_CHARS = 200
_CONVERSATION_FIELD = Component(name="talk", type="chat")
Group = tuple[str, str]
"""A column's part of the row (`context` or `input`) and its name."""


class NewFields:
    """The fields that an import creates, one for each column, in order of first occurrence.

    A column whose name is not a valid field name gets another name, and its own name as title.
    """

    def __init__(self, answer: str):
        self._taken_names = {*RESERVED_NAMES, answer}
        self._names: dict[Group, str] = {}
        self.unknown_columns: Counter[str] = Counter()
        self._is_conversation_by_field: dict[str, bool] = {}

    def rename_columns(self, row: HistoryRow) -> HistoryRow:
        """Return the row with its columns renamed to fields."""
        context = self._name_values("context", row.context)
        for name, value in context.items():
            # A single row that is not a conversation makes the column a text.
            self._is_conversation_by_field[name] = self._is_conversation_by_field.get(
                name, True
            ) and _is_conversation(value)
        inputs = self._name_values("input", row.input)
        return row.model_copy(update={"context": context, "input": inputs})

    def get_columns(self, group: str) -> dict[str, str]:
        """Return {field: column} of the context or of the input."""
        return {
            name: column for (location, column), name in self._names.items() if location == group
        }

    @property
    def conversation_fields(self) -> set[str]:
        """Return the context fields that contain a conversation in every row."""
        return {
            name
            for name, is_conversation in self._is_conversation_by_field.items()
            if is_conversation
        }

    @property
    def renamed_columns(self) -> dict[str, str]:
        """Return the columns whose field has another name."""
        return {column: name for (_, column), name in self._names.items() if column != name}

    def _name_values(self, group: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values by field name, with numbers as texts and without null values."""
        fields: dict[str, Any] = {}
        for column, value in values.items():
            name = self._get_or_choose_name(group, column)
            if value is not None:
                is_number = isinstance(value, bool | int | float)
                fields[name] = json.dumps(value) if is_number else value
        return fields

    def _get_or_choose_name(self, group: str, column: str) -> str:
        if (group, column) not in self._names:
            self._names[group, column] = name = choose_field_name(column, self._taken_names)
            self._taken_names.add(name)
        return self._names[group, column]


class KnownFields:
    """The fields of an existing task.

    is_strict: people judge the rows, so a column that is not a field is refused. Otherwise such a
    column is stored with the row but never shown, and its rows are counted in `unknown_columns`.
    """

    def __init__(self, config: TaskConfig, *, is_strict: bool):
        self._config, self._is_strict = config, is_strict
        self.unknown_columns: Counter[str] = Counter()
        self._context = {component.name for component in config.context}
        other_components = (*config.input, *config.output, *config.metadata.create)
        self._input = {component.name for component in other_components} - self._context
        # An import that created the task used the names of columns as titles.
        self._titles = {
            component.label[:MAX_TITLE_CHARS]: component.name
            for component in (*config.context, *config.input)
            if component.label
        }
        self.renamed_columns: dict[str, str] = {}

    def rename_columns(self, row: HistoryRow) -> HistoryRow:
        """Return the row with each column under its field's name, in that field's group.

        Raises BadRow.
        """
        context: dict[str, Any] = {}
        inputs: dict[str, Any] = {}
        for column, value in (*row.context.items(), *row.input.items()):
            name = self._find_name(column)
            values = context if name in self._context else inputs
            if name in values:
                raise BadRow(f"`{name}` stands twice, in context and in input; leave one out")
            values[name] = value
        renamed_row = row.model_copy(update={"context": context, "input": inputs})
        if problem := _find_invalid_conversation(self._config, renamed_row):
            raise BadRow(problem)
        return renamed_row

    def _find_name(self, column: str) -> str:
        if column in self._context or column in self._input:
            return column
        name = self._titles.get(column[:MAX_TITLE_CHARS])
        if name is None and not self._is_strict:
            self.unknown_columns[column] += 1
            return column
        if name is None:
            fields = ", ".join((*self._context, *self._input))
            raise BadRow(
                f"the task has no field `{column}`; it has {fields}. Rename the column, leave it "
                "out, or import into a new task with --create"
            )
        self.renamed_columns[column] = name
        return name


def choose_field_name(column: str, taken_names: Iterable[str]) -> str:
    """Return a field name for a column: its own name if possible, or a new one made from it.

    A new name consists of the column's Latin letters and digits, with a number if it is taken.
    """
    if _NAME_PATTERN.fullmatch(column) and column not in taken_names:
        return column
    # Separates accents from their letters, so that they can be dropped.
    ascii_text = unicodedata.normalize("NFKD", column).encode("ascii", "ignore").decode()
    base = re.sub(r"[^A-Za-z0-9]+", "_", ascii_text).strip("_")[:MAX_NAME_CHARS].strip("_")
    if not base[:1].isalpha() or base in taken_names:
        base = f"column_{base}".strip("_")
    name, number = base, 1
    while name in taken_names:
        number += 1
        name = f"{base}_{number}"
    return name


def build_field_title(name: str, column: str) -> Mapping[str, str]:
    """Return the title of a field: its column's name if that differs."""
    title = column.strip()[:MAX_TITLE_CHARS]
    return {"label": title} if title and column != name else {}


def _is_conversation(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and not find_value_errors(_CONVERSATION_FIELD, value, {})
    )


def _find_invalid_conversation(config: TaskConfig, row: HistoryRow) -> str:
    """Return why a conversation of the row is invalid; empty if all are valid."""
    groups = (("context", config.context, row.context), ("input", config.input, row.input))
    for location, components, values in groups:
        for component in components:
            if component.type == "chat" and component.name in values:
                for problem in find_value_errors(component, values[component.name], {}):
                    return f"{location}.{component.name}: {problem}"
    return ""
