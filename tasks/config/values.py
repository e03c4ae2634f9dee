"""Whether a value fits a component, in words for the person who typed it."""

import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from tasks.config.components import Component

NEEDLESS = "Leave this out: with your other answers it is not asked"
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
LINK = re.compile(r"https?://[^\s/]+(/\S*)?|upload:[A-Za-z0-9._-]+")
LARGEST = sys.float_info.max
PROB_TOLERANCE = 1e-4  # as Dynabench 1.0
_VERBS = {
    "multiclass": "Choose",
    "multilabel": "Choose",
    "candidates": "Choose",
    "span": "Choose",
    "spans": "Mark",
    "image": "Add",
    "audio": "Add",
}


def missing_message(component: Component) -> str:
    """What to say when a required field is empty.

    >>> missing_message(Component(name="text", type="text", label="Your statement"))
    'Enter your statement'
    """
    title = component.title
    if title.endswith("?"):
        return f"Answer “{title}”"
    where = f" in the {component.reference}" if component.type in ("span", "spans") else ""
    return f"{_VERBS.get(component.type, 'Enter')} {title[:1].lower()}{title[1:]}{where}"


def check_value(component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
    """What is wrong with a filled value; empty when nothing is."""
    return _CHECKS[component.type](component, value, context)


def _subject(component: Component) -> str:
    title = component.title
    return f"“{title}”" if title.endswith("?") else title


def _text(component: Component, value: Any, _: Mapping[str, Any]) -> list[str]:
    subject = _subject(component)
    if not isinstance(value, str):
        return [f"{subject} must be a text"]
    found = []
    length = len(value.strip())
    if component.min_length is not None and length < component.min_length:
        found.append(f"{subject} must be at least {_characters(component.min_length)}")
    if component.max_length is not None and length > component.max_length:
        most = _characters(component.max_length)
        found.append(f"{subject} must be at most {most}; it is {length}")
    if FORBIDDEN.search(value):
        found.append(f"{subject} holds a control character; delete it")
    return found


def _characters(number: int) -> str:
    return f"{number} character" if number == 1 else f"{number} characters"


def _link(component: Component, value: Any, _: Mapping[str, Any]) -> list[str]:
    if isinstance(value, str) and LINK.fullmatch(value):
        return []
    return [f"{_subject(component)} must be a link that begins with https:// or http://"]


def _multiclass(component: Component, value: Any, _: Mapping[str, Any]) -> list[str]:
    if isinstance(value, str) and value in component.values:
        return []
    return [f"{_subject(component)} must be one of: {', '.join(component.values)}"]


def _multilabel(component: Component, value: Any, _: Mapping[str, Any]) -> list[str]:
    subject = _subject(component)
    if not isinstance(value, list | tuple):
        return [f"{subject} must be a list of choices"]
    unknown = [item for item in value if item not in component.values]
    if unknown:
        return [f"{subject} has no choice “{unknown[0]}”; use: {', '.join(component.values)}"]
    return [f"{subject} names a choice twice"] if len(set(value)) < len(value) else []


def _number(component: Component, value: Any, _: Mapping[str, Any]) -> list[str]:
    subject = _subject(component)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return [f"{subject} must be a number"]
    if component.minimum is not None and value < component.minimum:
        return [f"{subject} must be at least {component.minimum:g}"]
    if component.maximum is not None and value > component.maximum:
        return [f"{subject} must be at most {component.maximum:g}"]
    if component.step is not None:
        start = component.minimum or 0.0
        steps = (value - start) / component.step
        if abs(steps - round(steps)) > 1e-6:
            return [f"{subject} must go in steps of {component.step:g} from {start:g}"]
    return []


def _passage(component: Component, context: Mapping[str, Any]) -> str:
    return str(context.get(str(component.reference)) or "")


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _stretch(component: Component, value: Mapping[str, Any], context: Mapping[str, Any]) -> bool:
    """Whether `passage[start:end] == text`, counted in code points."""
    start, end, text = value["start"], value["end"], value["text"]
    passage = _passage(component, context)
    right = _is_offset(start) and _is_offset(end) and 0 <= start < end <= len(passage)
    return right and passage[start:end] == text


def _span(component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
    subject = _subject(component)
    if not isinstance(value, Mapping) or set(value) != {"text", "start", "end"}:
        return [f"{subject} must have text, start and end"]
    if not _stretch(component, value, context):
        return [f"{subject} must stand in the {component.reference} exactly as it is given"]
    if component.max_length is not None and len(value["text"]) > component.max_length:
        return [f"{subject} must be at most {_characters(component.max_length)}"]
    return []


def _spans(component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
    subject = _subject(component)
    keys = {"text", "start", "end", *(["tag"] if component.tags else [])}
    if not isinstance(value, list | tuple):
        return [f"{subject} must be a list"]
    for number, item in enumerate(value, 1):
        if not isinstance(item, Mapping) or set(item) != keys:
            return [f"{subject}, number {number}: needs {', '.join(sorted(keys))}"]
        if not _stretch(component, item, context):
            return [f"{subject}, number {number}: is not in the {component.reference} there"]
        if component.tags and item["tag"] not in component.tags:
            return [f"{subject}, number {number}: use one of {', '.join(component.tags)}"]
    marks = [(item["start"], item["end"], item.get("tag")) for item in value]
    return [f"{subject} has the same mark twice"] if len(set(marks)) < len(marks) else []


def _probability(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _prob(component: Component, value: Any, _: Mapping[str, Any]) -> list[str]:
    subject = _subject(component)
    if component.single:
        return [] if _probability(value) else [f"{subject} must be between 0 and 1"]
    if not isinstance(value, Mapping) or not all(map(_probability, value.values())):
        return [f"{subject} must give a number between 0 and 1 for each label"]
    total = math.fsum(value.values())
    return [] if abs(total - 1) <= PROB_TOLERANCE else [f"{subject} must sum to 1, not {total:g}"]


def _chat(component: Component, value: Any, _: Mapping[str, Any]) -> list[str]:
    subject = _subject(component)
    if not isinstance(value, list | tuple):
        return [f"{subject} must be a list of turns"]
    for number, turn in enumerate(value, 1):
        if not isinstance(turn, Mapping) or set(turn) != {"role", "text"}:
            return [f"{subject}, turn {number}: needs role and text"]
        if turn["role"] not in ("system", "user", "assistant"):
            return [f"{subject}, turn {number}: the role must be system, user or assistant"]
        if not isinstance(turn["text"], str) or FORBIDDEN.search(turn["text"]):
            return [f"{subject}, turn {number}: the text must be a text"]
    return []


def _candidates(component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
    """A list of texts, or the number of the chosen one when it refers to such a list."""
    subject = _subject(component)
    if component.reference is not None:
        offered = context.get(component.reference) or []
        if _is_offset(value) and 0 <= value < len(offered):
            return []
        return [f"{subject} must be the number of a candidate, from 0 to {len(offered) - 1}"]
    texts = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return [] if texts else [f"{subject} must be a list of texts"]


_CHECKS: Mapping[str, Callable[[Component, Any, Mapping[str, Any]], list[str]]] = {
    "text": _text,
    "long_text": _text,
    "image": _link,
    "audio": _link,
    "span": _span,
    "spans": _spans,
    "multiclass": _multiclass,
    "multilabel": _multilabel,
    "number": _number,
    "slider": _number,
    "prob": _prob,
    "chat": _chat,
    "candidates": _candidates,
}
