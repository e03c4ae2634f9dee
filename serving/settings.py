"""Read a model's dynabench.json. Each key is used, or refused by name. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from core.text.words import format_label

from .errors import MisconfiguredError

SETTINGS_FILE = "dynabench.json"
SETTING_KEYS = ("kind", "fields", "output", "labels", "max_length")
NOTE_KEYS = ("trained_on", "seed")
"""Keys that our training adds for people to read."""
MIN_TOKENS = 8


@dataclass(frozen=True)
class Settings:
    """The values of a settings file; None or empty for missing ones."""

    kind: str | None = None
    fields: tuple[str, ...] = ()
    output: str | None = None
    labels: tuple[str, ...] = ()
    max_length: int | None = None


def read_settings(name: str, values: Mapping[str, Any]) -> Settings:
    """Return the settings in the file's JSON object. `null` counts as missing.

    Raises MisconfiguredError for a value of the wrong type, with an example of a valid one.
    """
    labels = _get_list(values.get("labels"))
    length = values.get("max_length")
    is_wrong = {
        "kind": not isinstance(values.get("kind") or "", str),
        "output": not isinstance(values.get("output") or "", str),
        "fields": not all(isinstance(field, str) for field in _get_list(values.get("fields"))),
        "labels": not all(isinstance(label, str | int | float) for label in labels),
        "max_length": length is not None and (type(length) is not int or length < MIN_TOKENS),
    }
    for key in SETTING_KEYS:
        if is_wrong[key] or (key in ("fields", "labels") and not _is_list(values.get(key))):
            raise MisconfiguredError(f"{name}: {SETTINGS_FILE}: {EXPECTED_FORMS[key]}")
    return Settings(
        kind=values.get("kind") or None,
        fields=tuple(_get_list(values.get("fields"))),
        output=values.get("output") or None,
        labels=tuple(format_label(label) or str(label) for label in labels),
        max_length=length,
    )


EXPECTED_FORMS = {
    "kind": '`kind` must be a text, such as "sequence-classification".',
    "fields": '`fields` must be a list of texts, such as ["premise", "hypothesis"].',
    "output": '`output` must be a text: the name of the answer\'s field, such as "label".',
    "labels": '`labels` must be a list in the order of the logits, such as ["no", "yes"].',
    "max_length": f"`max_length` must be a whole number of tokens, {MIN_TOKENS} or more.",
}


def check_keys(name: str, values: Mapping[str, Any]) -> None:
    """Raise MisconfiguredError for an unknown key.

    Only newly uploaded folders are checked, because existing ones may have keys of other releases.
    """
    for key in values:
        if key in SETTING_KEYS or key in NOTE_KEYS:
            continue
        advice = f"The keys are {', '.join(SETTING_KEYS)}."
        for similar_key in get_close_matches(key, SETTING_KEYS, n=1):
            advice = f"Did you mean `{similar_key}`?"
        raise MisconfiguredError(
            f"{name}: {SETTINGS_FILE}: `{key[:100]}` isn't a setting. {advice} "
            "Correct it or remove it."
        )


def sort_fields(
    name: str,
    own_fields: Sequence[str],
    task_fields: Sequence[str] | None,
    usual_fields: Sequence[str],
) -> tuple[str, ...]:
    """Return the fields in the order in which the model reads them.

    own_fields: the names in the file, which may be the task's or the kind's. task_fields: the
    task's names; None without a task. usual_fields: the kind's names. Raises MisconfiguredError for
    other names.
    """
    if task_fields is not None and len(task_fields) != len(usual_fields):
        raise MisconfiguredError(
            f"{name}: a model of its kind reads {len(usual_fields)} field(s), but the task has "
            f"{len(task_fields)}: {', '.join(task_fields)}. Write another `kind` in "
            f"{SETTINGS_FILE}, or take it out."
        )
    if not own_fields:
        return tuple(task_fields or usual_fields)
    if len(own_fields) != len(usual_fields) or len(set(own_fields)) != len(own_fields):
        raise MisconfiguredError(
            f"{name}: {SETTINGS_FILE}: `fields` must name {len(usual_fields)} different field(s) "
            f"for its kind, such as {', '.join(task_fields or usual_fields)}; it names "
            f"{', '.join(own_fields) or 'none'}."
        )
    if task_fields is None or set(own_fields) == set(task_fields):
        return tuple(own_fields)
    if set(own_fields) == set(usual_fields):
        return tuple(task_fields[usual_fields.index(field)] for field in own_fields)
    raise MisconfiguredError(
        f"{name}: {SETTINGS_FILE}: `fields` names {', '.join(own_fields)}, but the task's models "
        f"read {', '.join(task_fields)}. Write these names in the order in "
        "which the model reads them, or take `fields` out."
    )


def _is_list(value: Any) -> bool:
    return value is None or isinstance(value, list | tuple)


def _get_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
