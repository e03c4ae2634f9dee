"""Stretches of a context text: span (one) and spans (several, with or without tags)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.text.words import gettext_noop
from tasks.config.components import (
    Component,
    FieldType,
    FormInput,
    check_reference,
    display_plainly,
    format_value,
    join_labels,
)
from tasks.config.parsing import Finding, Loc
from tasks.config.stretches import LINE_BREAK_SIGN, find_span_at, find_spans, join_lines
from tasks.config.values import format_characters, format_subject

START_PATTERN = re.compile(r"(.+) @(\d{1,9})", re.DOTALL)


class _Stretch(FieldType):
    def findings(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        texts = []
        for field in groups["context"]:
            if field.kind.is_text:
                texts.append(field.name)
        yield from check_reference(loc, component, texts, "a text of the context")


class Span(_Stretch, name="span"):
    """A stretch of a context text, `{text, start, end}`. Models answer only the text."""

    title = gettext_noop("A part of a given text")
    place = 5
    keys = ("reference", "placeholder", "max_length")
    places = ("input", "output", "metadata")
    in_prompt = True
    display = display_plainly
    category = "question-answering"
    missing = "Choose {title} in the {reference}"

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        if not isinstance(value, Mapping) or set(value) != {"text", "start", "end"}:
            return [f"{subject} must have text, start and end"]
        if not _is_in_passage(component, value, context):
            return [
                f"{subject} must stand in the {component.reference} exactly as it is given, from "
                "start to end, which count code points, not UTF-16 units or bytes"
            ]
        if component.max_length is not None and len(value["text"]) > component.max_length:
            return [f"{subject} must be at most {format_characters(component.max_length)}"]
        return []

    def form_input(self, component: Component) -> FormInput:
        attrs = {"rows": 1, "class": "short", "autocomplete": "off", "dir": "auto"}
        return FormInput(widget="Textarea", attrs=attrs)  # an <input> would drop line breaks

    def described(self, component: Component) -> str:
        return f"text, start and end of a stretch of {component.reference}, in characters"

    def stored(self, component: Component, typed: Any, context: Mapping[str, Any]) -> Any:
        """Return the first stretch of the passage with the entered words."""
        if not isinstance(typed, str):
            return typed
        passage = _get_passage(component, context)
        for start, end in find_spans(typed, passage)[:1]:
            return {"text": passage[start:end], "start": start, "end": end}
        return {"text": typed, "start": -1, "end": len(typed) - 1}  # `check` refuses it

    def typed(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return value["text"]
        return value


class Spans(_Stretch, name="spans"):
    """A list of `{text, start, end}`, with `tag` if the configuration has tags.

    A form has one line per mark, `words = tag`. Words that occur more than once in the passage need
    their start, `words @17 = tag`. A line break in the words is written as `⏎`.
    """

    title = gettext_noop("Several parts of a given text, with tags")
    place = 6
    keys = ("reference", "tags", "colours")
    places = ("input", "output", "metadata")
    category = "token-classification"
    own_metrics = ("spans_f1", "spans_overlap_f1")
    missing = "Mark {title} in the {reference}"

    def is_list(self, component: Component) -> bool:
        return True

    def check_shape(self, component: Component, value: Any) -> list[str]:
        subject = format_subject(component)
        keys = {"text", "start", "end"}.union(["tag"] if component.tags else [])
        if not isinstance(value, list | tuple):
            return [f"{subject} must be a list"]
        for number, item in enumerate(value, 1):
            if not isinstance(item, Mapping) or set(item) != keys:
                return [f"{subject}, number {number}: needs {', '.join(sorted(keys))}"]
            if component.tags and item["tag"] not in component.tags:
                return [f"{subject}, number {number}: use one of {join_labels(component.tags)}"]
            if not _is_valid_span(item):
                return [f"{subject}, number {number}: is not in the {component.reference} there"]
        return []

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject, passage = format_subject(component), _get_passage(component, context)
        # A form leaves lines that are no mark as texts; the first one is explained.
        for number, line in enumerate(value if isinstance(value, list) else (), 1):
            if isinstance(line, str):
                return [f"{subject}, line {number}: {_explain_error(component, line, passage)}"]
        if wrong := self.check_shape(component, value):
            return wrong
        for number, item in enumerate(value, 1):
            if not _is_in_passage(component, item, context):
                return [f"{subject}, number {number}: is not in the {component.reference} there"]
        marks = [(item["start"], item["end"], item.get("tag")) for item in value]
        if len(set(marks)) < len(marks):
            return [f"{subject} has the same mark twice"]
        return []

    def form_input(self, component: Component) -> FormInput:
        choices = [(tag, tag) for tag in component.tags]
        return FormInput(widget="Marks", attrs={"rows": 3, "dir": "auto"}, choices=choices)

    def display(self, component: Component, value: Any) -> str:
        marks = value
        if not isinstance(value, list | tuple):
            marks = [value]
        return ", ".join(map(_display_mark, marks))

    def described(self, component: Component) -> str:
        keys = "text, start, end and tag" if component.tags else "text, start and end"
        return f"a list of stretches of {component.reference}: {keys}, in characters"

    def stored(self, component: Component, typed: Any, context: Mapping[str, Any]) -> Any:
        """Convert lines to marks. An invalid line stays a text, so that `check` refuses it."""
        if not isinstance(typed, str):
            return typed
        passage = _get_passage(component, context)
        lines = filter(None, map(str.strip, typed.split("\n")))  # U+2028 may be in a passage
        return [_parse_mark(component, line, passage) or line for line in lines]

    def rule(self, component: Component) -> str:
        return "spans_f1"


def format_marks(value: Any) -> str:
    """Return marks as the lines of a form field.

    >>> as_lines([{"text": "Tarn", "start": 17, "end": 21, "tag": "place"}])
    'Tarn @17 = place'
    """
    if not isinstance(value, list | tuple):
        return str(value or "")
    return "\n".join(map(_format_mark, value))


def _format_mark(mark: Any) -> str:
    if not isinstance(mark, Mapping):
        return str(mark)
    line = f"{join_lines(mark['text'])} @{mark['start']}"
    if "tag" in mark:
        return f"{line} = {mark['tag']}"
    return line


def _display_mark(mark: Any) -> str:
    tag = mark.get("tag") if isinstance(mark, Mapping) else None
    return f"{format_value(mark)} ({tag})" if tag else format_value(mark)


def _get_passage(component: Component, context: Mapping[str, Any]) -> str:
    return str(context.get(str(component.reference)) or "")


def _split_line(component: Component, line: str) -> tuple[str, str, int | None]:
    """Split a line into its words, its tag, and its start offset, or None without one."""
    words, _, tag = line.rpartition(" = ") if component.tags else (line, "", "")
    if place := START_PATTERN.fullmatch(words):
        return place[1].rstrip(), tag.strip(), int(place[2])
    return words.strip(), tag.strip(), None


def _parse_mark(component: Component, line: str, passage: str) -> dict[str, Any] | None:
    """Return the mark that a line describes; None if it is ambiguous or not in the passage."""
    words, tag, at = _split_line(component, line)
    # The line says where the words begin. Otherwise they must stand in the passage once.
    if at is not None:
        stretch = find_span_at(words, passage, at)
    else:
        places = find_spans(words, passage)
        stretch = None
        if len(places) == 1:
            stretch = places[0]
    if stretch is None:
        return None
    start, end = stretch
    mark = {"text": passage[start:end], "start": start, "end": end}
    if tag:
        return mark | {"tag": tag}
    return mark


def _explain_error(component: Component, line: str, passage: str) -> str:
    """Return the reason why a line marks nothing or is ambiguous."""
    words, _, at = _split_line(component, line)
    matches = find_spans(words, passage)
    if not words:
        return f"write the words, “ = ” and one of {join_labels(component.tags)}"
    if not matches:
        hint = ""
        if "\n" in passage:
            hint = f"; write a line break in it as {LINE_BREAK_SIGN}"
        return f"“{words}” is not in the {component.reference}{hint}"
    places = " or ".join(f"{words} @{start}" for start, _end in matches[:3])
    wrong = f"is there {len(matches)} times" if at is None else f"does not begin at {at}"
    return f"“{words}” {wrong}; write {places}"


def _is_in_passage(
    component: Component, value: Mapping[str, Any], context: Mapping[str, Any]
) -> bool:
    """Return whether `passage[start:end] == text`, with offsets in code points."""
    passage = _get_passage(component, context)
    is_inside = _is_valid_span(value) and value["end"] <= len(passage)
    return is_inside and passage[value["start"] : value["end"]] == value["text"]


def _is_valid_span(value: Mapping[str, Any]) -> bool:
    """Return whether the offsets are whole numbers with 0 <= start < end."""
    start, end = value["start"], value["end"]
    are_whole = all(
        isinstance(offset, int) and not isinstance(offset, bool) for offset in (start, end)
    )
    return are_whole and 0 <= start < end
