"""Stretches of a context text: span (one) and spans (several, with or without tags)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.config.components import (
    Component,
    FieldType,
    FormInput,
    never_asked,
    plainly,
    refers,
)
from tasks.config.parsing import Finding, Loc
from tasks.config.values import characters, subject


class _Stretch(FieldType):
    display = plainly

    def findings(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        texts = [one.name for one in groups["context"] if one.kind.is_text]
        yield from refers(loc, component, texts, "a text of the context")


class Span(_Stretch, name="span"):
    """`{text, start, end}`; models answer the text alone."""

    keys = ("reference", "placeholder", "max_length")
    places = ("input", "output", "metadata")
    in_prompt = True
    category = "question-answering"
    missing = "Choose {title} in the {reference}"

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        named = subject(component)
        if not isinstance(value, Mapping) or set(value) != {"text", "start", "end"}:
            return [f"{named} must have text, start and end"]
        if not _is_there(component, value, context):
            return [f"{named} must stand in the {component.reference} exactly as it is given"]
        if component.max_length is not None and len(value["text"]) > component.max_length:
            return [f"{named} must be at most {characters(component.max_length)}"]
        return []

    def form_input(self, component: Component) -> FormInput:
        return FormInput(attrs={"autocomplete": "off", "dir": "auto"})

    def described(self, component: Component) -> str:
        return f"text, start and end of a stretch of {component.reference}, in characters"

    def stored(self, component: Component, typed: Any, context: Mapping[str, Any]) -> Any:
        """Its first place is meant."""
        if not isinstance(typed, str):
            return typed
        start = str(context.get(str(component.reference), "")).find(typed)
        return {"text": typed, "start": start, "end": start + len(typed)}

    def typed(self, value: Any) -> Any:
        return value["text"] if isinstance(value, Mapping) else value


class Spans(_Stretch, name="spans"):
    """A list of them. No page can ask for it yet."""

    keys = ("reference", "tags")
    places = ()
    missing = "Mark {title} in the {reference}"
    form_input = never_asked

    def is_list(self, component: Component) -> bool:
        return True

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        named = subject(component)
        keys = {"text", "start", "end", *(["tag"] if component.tags else [])}
        if not isinstance(value, list | tuple):
            return [f"{named} must be a list"]
        for number, item in enumerate(value, 1):
            if not isinstance(item, Mapping) or set(item) != keys:
                return [f"{named}, number {number}: needs {', '.join(sorted(keys))}"]
            if not _is_there(component, item, context):
                return [f"{named}, number {number}: is not in the {component.reference} there"]
            if component.tags and item["tag"] not in component.tags:
                return [f"{named}, number {number}: use one of {', '.join(component.tags)}"]
        marks = [(item["start"], item["end"], item.get("tag")) for item in value]
        return [f"{named} has the same mark twice"] if len(set(marks)) < len(marks) else []

    def described(self, component: Component) -> str:
        return f"a list of stretches of {component.reference}"


def _is_there(component: Component, value: Mapping[str, Any], context: Mapping[str, Any]) -> bool:
    """Whether `passage[start:end] == text`, counted in code points."""
    start, end, text = value["start"], value["end"], value["text"]
    passage = str(context.get(str(component.reference)) or "")
    right = _is_offset(start) and _is_offset(end) and 0 <= start < end <= len(passage)
    return right and passage[start:end] == text


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
