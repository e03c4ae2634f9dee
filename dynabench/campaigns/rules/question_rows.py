"""A questionnaire as form rows for editing without YAML, and back. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynabench.campaigns.rules.questionnaire import read_questionnaire
from tasks.config.components import Component
from tasks.config.parsing import dump_yaml

CHOICE_KINDS = ("multiclass", "multilabel")
"""The question types with choices."""
QUESTION_KINDS = ("text", "long_text", "number", *CHOICE_KINDS)
QUESTION_KEYS = {"name", "type", "label", "required", "labels"}
"""The keys of a question that a row can express."""
MAX_NAME_CHARS = 40


@dataclass(frozen=True)
class QuestionRow:
    """A question of the form.

    words: the question's text. is_about: whether it is about the person.
    """

    words: str
    kind: str = "text"
    choices: tuple[str, ...] = ()
    is_required: bool = True
    is_about: bool = False
    name: str = ""
    """The key under which answers are stored. If empty, it is derived from the text."""


def parse_question_rows(text: str) -> list[QuestionRow] | None:
    """Return the rows of a questionnaire in YAML.

    None if it uses options that rows cannot express. Raises ConfigError.
    """
    questionnaire = read_questionnaire(text)
    # A row cannot say that its question comes after the work.
    if questionnaire.after:
        return None
    maybe_rows = [_build_row(question, is_about=False) for question in questionnaire.questions]
    maybe_rows += [_build_row(question, is_about=True) for question in questionnaire.about]
    # One question that no row can say makes the whole text one for YAML.
    rows = [row for row in maybe_rows if row is not None]
    return rows if len(rows) == len(maybe_rows) else None


def _build_row(question: Component, *, is_about: bool) -> QuestionRow | None:
    """Return a question as a row; None if it uses options that a row cannot express."""
    is_plain = all(
        label.value == label.words and not (label.help or label.goal) for label in question.labels
    )
    # A key that a row has no field for would be lost when the row is saved.
    if (
        question.type not in QUESTION_KINDS
        or not is_plain
        or not question.model_fields_set <= QUESTION_KEYS
    ):
        return None
    return QuestionRow(
        words=question.title,
        kind=question.type,
        choices=question.values,
        is_required=question.required and not is_about,
        is_about=is_about,
        name=question.name,
    )


def format_questionnaire(rows: Iterable[QuestionRow]) -> str:
    """Return the YAML of a questionnaire with these rows; "" if there are none."""
    rows_by_part: dict[str, list[dict[str, Any]]] = {"questions": [], "about": []}
    for row in _assign_names(list(rows)):
        field: dict[str, Any] = {"name": row.name, "type": row.kind, "label": row.words}
        if row.kind in CHOICE_KINDS:
            field["labels"] = list(row.choices)
        if not (row.is_required or row.is_about):
            field["required"] = False
        rows_by_part["about" if row.is_about else "questions"].append(field)
    filled_parts = {name: fields for name, fields in rows_by_part.items() if fields}
    return dump_yaml(filled_parts) if filled_parts else ""


def _assign_names(rows: Sequence[QuestionRow]) -> list[QuestionRow]:
    """Return the rows with unique names; existing names are kept."""
    taken_names = {row.name for row in rows if row.name}
    named_rows = []
    for row in rows:
        name = row.name or _make_unique(_derive_name(row.words), taken_names)
        taken_names.add(name)
        named_rows.append(replace(row, name=name))
    return named_rows


def _derive_name(words: str) -> str:
    """Derive a name from a question's text."""
    # Names are keys of YAML and of files, so only letters, digits and underscores.
    name = re.sub(r"[^a-z0-9]+", "_", words.lower())[:MAX_NAME_CHARS].strip("_")
    return name if name[:1].isalpha() else f"question_{name}".rstrip("_")


def _make_unique(name: str, taken_names: set[str]) -> str:
    """Return the name, with a number appended if it is taken."""
    number, free_name = 1, name
    while free_name in taken_names:
        number += 1
        free_name = f"{name}_{number}"
    return free_name
