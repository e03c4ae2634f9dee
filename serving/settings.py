"""What a model's dynabench.json says, each key honoured or refused by name. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from core.text.words import label_text

from .errors import MisconfiguredError

FILE = "dynabench.json"
KEYS = ("kind", "fields", "output", "labels", "max_length")
NOTES = ("trained_on", "seed")
"""What our trainings write besides, for people to read."""
LEAST_TOKENS = 8


@dataclass(frozen=True)
class Settings:
    """The values of a settings file; None or empty for missing ones."""

    kind: str | None = None
    fields: tuple[str, ...] = ()
    output: str | None = None
    labels: tuple[str, ...] = ()
    max_length: int | None = None


def read_settings(name: str, values: Mapping[str, Any]) -> Settings:
    """Return the settings in the file's object. `null` counts as missing.

    Raises MisconfiguredError for a value of the wrong type, with an example of the right one.
    """
    labels = _list(values.get("labels"))
    length = values.get("max_length")
    is_wrong = {
        "kind": not isinstance(values.get("kind") or "", str),
        "output": not isinstance(values.get("output") or "", str),
        "fields": not all(isinstance(field, str) for field in _list(values.get("fields"))),
        "labels": not all(isinstance(label, str | int | float) for label in labels),
        "max_length": length is not None and (type(length) is not int or length < LEAST_TOKENS),
    }
    for key in KEYS:
        if is_wrong[key] or (key in ("fields", "labels") and not _is_list(values.get(key))):
            raise MisconfiguredError(f"{name}: {FILE}: {WANTED[key]}")
    return Settings(
        kind=values.get("kind") or None,
        fields=tuple(_list(values.get("fields"))),
        output=values.get("output") or None,
        labels=tuple(label_text(label) or str(label) for label in labels),
        max_length=length,
    )


WANTED = {
    "kind": '`kind` must be a text, such as "sequence-classification".',
    "fields": '`fields` must be a list of texts, such as ["premise", "hypothesis"].',
    "output": '`output` must be a text: the name of the answer\'s field, such as "label".',
    "labels": '`labels` must be a list in the order of the logits, such as ["no", "yes"].',
    "max_length": f"`max_length` must be a whole number of tokens, {LEAST_TOKENS} or more.",
}


def check_keys(name: str, values: Mapping[str, Any]) -> None:
    """Raise MisconfiguredError for an unknown key, which would be ignored silently.

    Only newly uploaded folders are checked, because existing ones may have keys of other releases.
    """
    for key in values:
        if key in KEYS or key in NOTES:
            continue
        cure = f"The keys are {', '.join(KEYS)}."
        for close in get_close_matches(key, KEYS, n=1):
            cure = f"Did you mean `{close}`?"
        raise MisconfiguredError(
            f"{name}: {FILE}: `{key[:100]}` is no setting. {cure} Correct it or take it out."
        )


def order_fields(
    name: str, own_fields: Sequence[str], of_task: Sequence[str] | None, usual_fields: Sequence[str]
) -> tuple[str, ...]:
    """Return the fields in the order in which the model reads them.

    own_fields: the names in the file, which may be the task's or the kind's. of_task: the task's
    names; None without a task. usual_fields: the names of the kind. Raises MisconfiguredError for
    other names.
    """
    if of_task is not None and len(of_task) != len(usual_fields):
        raise MisconfiguredError(
            f"{name}: a model of its kind reads {len(usual_fields)} field(s), but the task has "
            f"{len(of_task)}: {', '.join(of_task)}. Write another `kind` in {FILE}, or take it out."
        )
    if not own_fields:
        return tuple(of_task or usual_fields)
    if len(own_fields) != len(usual_fields) or len(set(own_fields)) != len(own_fields):
        raise MisconfiguredError(
            f"{name}: {FILE}: `fields` must name {len(usual_fields)} different field(s) for its "
            f"kind, such as {', '.join(of_task or usual_fields)}; it names "
            f"{', '.join(own_fields) or 'none'}."
        )
    if of_task is None or set(own_fields) == set(of_task):
        return tuple(own_fields)
    if set(own_fields) == set(usual_fields):
        return tuple(of_task[usual_fields.index(field)] for field in own_fields)
    raise MisconfiguredError(
        f"{name}: {FILE}: `fields` names {', '.join(own_fields)}, but the task's models read "
        f"{', '.join(of_task)}. Write these names in the order in which the model reads them, or "
        "take `fields` out."
    )


def _is_list(value: Any) -> bool:
    return value is None or isinstance(value, list | tuple)


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
