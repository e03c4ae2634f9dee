"""Whether a value fits a component, in words for the person who typed it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tasks.config.components import Component

NEEDLESS = "Leave this out: with your other answers it is not asked"
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")


def missing_message(component: Component) -> str:
    """What to say when a required field is empty.

    >>> missing_message(Component(name="text", type="text", label="Your statement"))
    'Enter your statement'
    """
    title = component.title
    if title.endswith("?"):
        return f"Answer “{title}”"
    title = title[:1].lower() + title[1:]
    return component.kind.missing.format(title=title, reference=component.reference)


def check_value(component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
    """What is wrong with a filled value; empty when nothing is."""
    return component.kind.check(component, value, context)


def kept_values(components: Iterable[Component], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they are stored: texts in NFC, labels as the configuration writes them."""
    kept = dict(values)
    for component in components:
        if component.name in kept:
            kept[component.name] = component.kind.kept(component, kept[component.name])
    return kept


def check_answer(
    component: Component, value: Any, context: Mapping[str, Any] | None = None
) -> list[str]:
    """What is wrong with a model's answer; without a context as far as its shape tells.

    Labels, texts and spans, which models answer otherwise than people, have checks of their own.
    """
    if component.kind.is_text or component.type in ("multiclass", "span"):
        return []
    if context is None:
        return component.kind.check_shape(component, value)
    return check_value(component, value, context)


def is_empty(value: Any) -> bool:
    """Whether a field was left empty.

    >>> [is_empty(value) for value in (None, " ", [], 0, False)]
    [True, True, True, False, False]
    """
    return value in (None, "", [], {}) or (isinstance(value, str) and not value.strip())


def subject(component: Component) -> str:
    """The field, as a sentence about it begins."""
    title = component.title
    return f"“{title}”" if title.endswith("?") else title


def characters(number: int) -> str:
    """A number of characters, in words."""
    return f"{number} character" if number == 1 else f"{number} characters"
