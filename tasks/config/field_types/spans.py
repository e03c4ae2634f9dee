"""Spans of a context text: span (one) and spans (several, with or without tags)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.text.words import gettext_noop
from tasks.config.components import (
    Component,
    FieldType,
    FormInput,
    display_plainly,
    find_reference_errors,
    format_value,
    join_labels,
)
from tasks.config.parsing import Finding, Loc
from tasks.config.passage_spans import LINE_BREAK_SIGN, find_span_at, find_spans, join_lines
from tasks.config.values import format_characters, format_subject

START_PATTERN = re.compile(r"(.+) @(\d{1,9})", re.DOTALL)


class _SpanBase(FieldType):
    def find_contradictions(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        text_names = []
        for field in groups["context"]:
            if field.kind.is_text:
                text_names.append(field.name)
        yield from find_reference_errors(loc, component, text_names, "a text of the context")


class Span(_SpanBase, name="span"):
    """A field with a span of a context text, `{text, start, end}`. Models answer with text only."""

    title = gettext_noop("One passage from a text")
    place = 5
    keys = ("reference", "placeholder", "max_length")
    sections = ("input", "output", "metadata")
    can_be_in_prompt = True
    display = display_plainly
    hub_category = "question-answering"
    missing_message = "Choose {title} in the {reference}"

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        if not isinstance(value, Mapping) or set(value) != {"text", "start", "end"}:
            return [f"{subject} must have text, start and end"]
        if not _is_in_passage(component, value, context):
            return [
                (
                    f"{subject} must appear in the {component.reference} exactly as it is "
                    "given, from start to end, which count code points, not UTF-16 units or "
                    "bytes"
                )
            ]
        if component.max_length is not None and len(value["text"]) > component.max_length:
            return [f"{subject} must be at most {format_characters(component.max_length)}"]
        return []

    def build_form_input(self, component: Component) -> FormInput:
        attrs = {"rows": 1, "class": "short", "autocomplete": "off", "dir": "auto"}
        return FormInput(widget="Textarea", attrs=attrs)  # an <input> would drop line breaks

    def describe_value(self, component: Component) -> str:
        return f"text, start and end of a stretch of {component.reference}, in characters"

    def parse_typed_value(
        self, component: Component, typed_value: Any, context: Mapping[str, Any]
    ) -> Any:
        """Return the first span of the passage with the entered words.

        If there is none, return a span that `check` refuses.
        """
        if not isinstance(typed_value, str):
            return typed_value
        passage = _get_passage(component, context)
        for start, end in find_spans(typed_value, passage)[:1]:
            return {"text": passage[start:end], "start": start, "end": end}
        return {"text": typed_value, "start": -1, "end": len(typed_value) - 1}  # `check` refuses it

    def build_initial_value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return value["text"]
        return value


class Spans(_SpanBase, name="spans"):
    """A field with a list of spans `{text, start, end}`, with `tag` if the configuration has tags.

    A form has one line per span, `words = tag`. If the words occur more than once in the passage,
    the line also needs their start: `words @17 = tag`. A line break in the words is written as `⏎`.
    """

    title = gettext_noop("Several tagged passages from a text")
    place = 6
    keys = ("reference", "tags", "colours")
    sections = ("input", "output", "metadata")
    hub_category = "token-classification"
    own_metrics = ("spans_f1", "spans_overlap_f1")
    missing_message = "Mark {title} in the {reference}"

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
        if messages := self.check_shape(component, value):
            return messages
        for number, item in enumerate(value, 1):
            if not _is_in_passage(component, item, context):
                return [f"{subject}, number {number}: is not in the {component.reference} there"]
        marks = [(item["start"], item["end"], item.get("tag")) for item in value]
        if len(set(marks)) < len(marks):
            return [f"{subject} has the same mark twice"]
        return []

    def build_form_input(self, component: Component) -> FormInput:
        choices = [(tag, tag) for tag in component.tags]
        return FormInput(widget="Marks", attrs={"rows": 3, "dir": "auto"}, choices=choices)

    def display(self, component: Component, value: Any) -> str:
        marks = value
        if not isinstance(value, list | tuple):
            marks = [value]
        return ", ".join(map(_display_mark, marks))

    def describe_value(self, component: Component) -> str:
        keys = "text, start, end and tag" if component.tags else "text, start and end"
        return f"a list of stretches of {component.reference}: {keys}, in characters"

    def parse_typed_value(
        self, component: Component, typed_value: Any, context: Mapping[str, Any]
    ) -> Any:
        """Return a span for each entered line. An invalid line stays a text; `check` refuses it."""
        if not isinstance(typed_value, str):
            return typed_value
        passage = _get_passage(component, context)
        lines = filter(None, map(str.strip, typed_value.split("\n")))  # U+2028 may be in a passage
        return [_parse_mark(component, line, passage) or line for line in lines]

    def get_verdict_rule(self, component: Component) -> str:
        return "spans_f1"


def format_marks(value: Any) -> str:
    """Return spans as lines for a form field.

    >>> format_marks([{"text": "Tarn", "start": 17, "end": 21, "tag": "place"}])
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
    """Return a line's words, tag and start. A missing tag is "", and a missing start is None."""
    words, _, tag = line.rpartition(" = ") if component.tags else (line, "", "")
    if match := START_PATTERN.fullmatch(words):
        return match[1].rstrip(), tag.strip(), int(match[2])
    return words.strip(), tag.strip(), None


def _parse_mark(component: Component, line: str, passage: str) -> dict[str, Any] | None:
    """Return the span that a line describes; None if it is ambiguous or not in the passage."""
    words, tag, start_offset = _split_line(component, line)
    # The line says where the words begin. Otherwise they must stand in the passage once.
    if start_offset is not None:
        span = find_span_at(words, passage, start_offset)
    else:
        spans = find_spans(words, passage)
        span = None
        if len(spans) == 1:
            span = spans[0]
    if span is None:
        return None
    start, end = span
    mark = {"text": passage[start:end], "start": start, "end": end}
    if tag:
        return mark | {"tag": tag}
    return mark


def _explain_error(component: Component, line: str, passage: str) -> str:
    """Return the reason why a line marks nothing or is ambiguous."""
    words, _, start_offset = _split_line(component, line)
    matches = find_spans(words, passage)
    if not words:
        return f"write the words, “ = ” and one of {join_labels(component.tags)}"
    if not matches:
        hint = ""
        if "\n" in passage:
            hint = f"; write a line break in it as {LINE_BREAK_SIGN}"
        return f"“{words}” is not in the {component.reference}{hint}"
    suggestions = " or ".join(f"{words} @{start}" for start, _end in matches[:3])
    problem = (
        f"is there {len(matches)} times"
        if start_offset is None
        else f"does not begin at {start_offset}"
    )
    return f"“{words}” {problem}; write {suggestions}"


def _is_in_passage(
    component: Component, value: Mapping[str, Any], context: Mapping[str, Any]
) -> bool:
    """Return whether the passage has the span's text between its offsets, in code points."""
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
