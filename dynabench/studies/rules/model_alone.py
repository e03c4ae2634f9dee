"""What a model answers without a person: the question to it, and its answer as read. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from validation.rates.rates import compute_wilson_interval

KEY = "key"
"""The entry of a context's metadata that has the right answer, as {field: value}."""
NUMBER_PATTERN = re.compile(r"-?\d+(?:[.,]\d+)?")


class AloneShare(NamedTuple):
    """How often a model alone is right: numbers of cases, the share and its 95% interval."""

    asked: int
    right: int
    share: float
    low: float
    high: float


def build_alone_question(config: TaskConfig, field: Component) -> str:
    """Return the question to a model about one of the person's final answers."""
    lines = [config.goal.text, field.title]
    if field.values:
        words = ", ".join(label.words for label in field.labels)
        lines.append(f"Answer with one of these words only: {words}.")
    else:
        lines.append("Answer with a number only.")
    return "\n".join(lines)


def read_alone_answer(field: Component, reply: str) -> str | float | None:
    """Return the label that the reply names, or its number; None if it names none or several.

    A label that is part of another one counts only where it stands alone.
    """
    if not field.values:
        number = NUMBER_PATTERN.search(reply)
        return float(number[0].replace(",", ".")) if number else None
    rest, named = reply.casefold(), []
    # The longest first, and each taken out, so that "not true" is not read as "true".
    for label in sorted(field.labels, key=lambda label: -len(label.words)):
        pattern = rf"(?<!\w){re.escape(label.words.casefold())}(?!\w)"
        if re.search(pattern, rest):
            named.append(label.value)
            rest = re.sub(pattern, " ", rest)
    return named[0] if len(named) == 1 else None


def read_key(metadata: Mapping[str, Any], fields: Collection[str]) -> Mapping[str, Any] | None:
    """Return the key of a case. fields: what people answer.

    None without a key, or if it is no object, empty, or names anything else: nobody can meet it.

    >>> read_key({"key": {"advice": "doctor"}}, ("advice",))
    {'advice': 'doctor'}
    >>> read_key({"key": {}}, ("advice",))
    """
    key = metadata.get(KEY)
    if not isinstance(key, Mapping) or not key or not key.keys() <= set(fields):
        return None
    return key


def is_key_met(key: Mapping[str, Any], answers: Mapping[str, Any]) -> bool:
    """Return whether the answers have all values of a case's key."""
    return all(answers.get(field) == value for field, value in key.items())


def count_alone_share(results: Sequence[bool]) -> AloneShare | None:
    """Return how often a model was right; None without results."""
    if not results:
        return None
    right = sum(results)
    low, high = compute_wilson_interval(right, len(results))
    return AloneShare(len(results), right, right / len(results), low, high)
