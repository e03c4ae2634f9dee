"""Check whether a value fits a field, with messages for the person who entered it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tasks.config.components import Component

NOT_ASKED_MESSAGE = "Leave this out: with your other answers it is not asked"
FORBIDDEN_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")


def build_missing_message(component: Component) -> str:
    """Return the message for a required field that is empty.

    >>> build_missing_message(Component(name="text", type="text", label="Your statement"))
    'Enter your statement'
    """
    title = component.title
    if title.endswith("?"):
        return f"Answer “{title}”"
    title = title[:1].lower() + title[1:]
    return component.kind.missing_message.format(title=title, reference=component.reference)


def find_value_errors(component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
    """Return error messages for a non-empty value; an empty list if it is valid."""
    return component.kind.check(component, value, context)


def normalise_values(components: Iterable[Component], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in stored form: texts in NFC, labels spelled as configured."""
    stored_values = dict(values)
    for component in components:
        if component.name in stored_values:
            stored_values[component.name] = component.kind.normalise(
                component, stored_values[component.name]
            )
    return stored_values


def find_answer_errors(
    component: Component, value: Any, context: Mapping[str, Any] | None = None
) -> list[str]:
    """Return error messages for a model's answer. Without a context, check only its shape.

    Labels, texts and spans are checked elsewhere, because models answer in another form than
    people.
    """
    # These are checked where the answer is read, with the model's own spelling in mind.
    if component.kind.is_text or component.type in ("multiclass", "span"):
        return []
    if context is None:
        return component.kind.check_shape(component, value)
    return find_value_errors(component, value, context)


def is_empty(value: Any) -> bool:
    """Return whether a field has no value.

    >>> [is_empty(value) for value in (None, " ", [], 0, False)]
    [True, True, True, False, False]
    """
    return value in (None, "", [], {}) or (isinstance(value, str) and not value.strip())


def format_subject(component: Component) -> str:
    """Return the field's title as the beginning of a sentence."""
    title = component.title
    if title.endswith("?"):
        return f"“{title}”"
    return title


def format_characters(number: int) -> str:
    """Return a number of characters in words, such as "2 characters"."""
    if number == 1:
        return f"{number} character"
    return f"{number} characters"
