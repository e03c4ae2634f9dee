"""Criteria: short texts that people check, one by one, against a model's answer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.text.words import compose_value, gettext_noop
from tasks.config.components import Component, FieldType, FormInput
from tasks.config.criteria import read_criteria
from tasks.config.parsing import Finding, Loc, locate_inside
from tasks.config.values import FORBIDDEN_CHARACTERS, format_characters, format_subject

DEFAULT_MAX_CRITERIA = 10
MAX_CHARS = 500
"""The longest criterion, unless the configuration says another maximum."""
MAX_POINTS = 10
MAX_SHOWN_CHARS = 40
"""How much of a criterion a message repeats."""
POINTS_SIGN = " = "


class Criteria(FieldType, name="criteria"):
    """A list of criteria, `{text, points}`, that a model's answer meets or not.

    A form has one line per criterion, with `points: true` as `text = points`. Models never read it.
    """

    title = gettext_noop("Criteria for the model's answer")
    place = 14
    keys = ("points", "max_criteria", "max_length", "placeholder")
    sections = ("input",)
    is_read = False
    missing_message = "Write at least one line: {title}"

    def is_list(self, component: Component) -> bool:
        return True

    def check(self, component: Component, value: Any, context: Mapping[str, Any]) -> list[str]:
        subject = format_subject(component)
        if not isinstance(value, list | tuple):
            return [f"{subject} must be a list of criteria"]
        # Before anything that takes time in proportion to the number.
        most = component.max_criteria or DEFAULT_MAX_CRITERIA
        if len(value) > most:
            return [f"{subject}: write at most {most} criteria; there are {len(value)}"]
        if not value:
            return [f"{subject}: write at least one criterion"]
        for number, item in enumerate(value, 1):
            if message := _find_item_error(component, item):
                return [f"{subject}, number {number}: {message}"]
        return _find_list_errors(component, subject, value)

    def normalise(self, component: Component, value: Any) -> Any:
        """Return criteria as `{text, points}`. A plain text is a criterion of one point."""
        if not isinstance(value, list | tuple):
            return compose_value(value)
        return [_normalise_item(item) for item in value]

    def build_form_input(self, component: Component) -> FormInput:
        attrs = {"rows": 4, "dir": "auto", "points": component.points}
        return FormInput(widget="CriteriaLines", attrs=attrs)

    def parse_typed_value(
        self, component: Component, typed_value: Any, context: Mapping[str, Any]
    ) -> Any:
        """Return a criterion for each line that is not empty."""
        if not isinstance(typed_value, str):
            return self.normalise(component, typed_value)
        lines = filter(None, map(str.strip, typed_value.split("\n")))
        return [_parse_line(component, line) for line in lines]

    def build_initial_value(self, value: Any) -> Any:
        return format_criteria(value)

    def display(self, component: Component, value: Any) -> str:
        criteria = read_criteria(value)
        if not criteria:
            return str(value or "")
        lines = []
        for number, criterion in enumerate(criteria, 1):
            suffix = f" ({_format_points(criterion.points)})" if component.points else ""
            lines.append(f"{number}. {criterion.text}{suffix}")
        return "\n".join(lines)

    def describe_value(self, component: Component) -> str:
        return "a list of criteria for the model's answer, each with text and points"

    def find_contradictions(
        self, loc: Loc, component: Component, groups: Mapping[str, Sequence[Component]]
    ) -> Iterator[Finding]:
        if component.max_length is not None and component.max_length > MAX_CHARS:
            message = f"a criterion has at most {MAX_CHARS} characters"
            yield Finding(
                locate_inside(loc, "max_length"),
                message,
                f"write {MAX_CHARS} or less, or remove it",
            )
        others = [field for field in groups["input"] if field.type == "criteria"]
        if others and others[0] is not component and loc[0] == "input":
            message = f"{others[0].name} has the criteria of an example already"
            yield Finding(loc, message, "remove one of the two")


def format_criteria(value: Any) -> str:
    """Return criteria as lines for a form field.

    >>> format_criteria([{"text": "Names the dose", "points": 3}])
    'Names the dose = 3'
    >>> format_criteria([{"text": "Is polite", "points": 1}])
    'Is polite'
    """
    if not isinstance(value, list | tuple):
        return str(value or "")
    lines = []
    for item in value:
        text, points = item, 1
        if isinstance(item, Mapping):
            text, points = item.get("text"), item.get("points", 1)
        lines.append(str(text) if points == 1 else f"{text}{POINTS_SIGN}{points}")
    return "\n".join(lines)


def _parse_line(component: Component, line: str) -> dict[str, Any]:
    """Return the criterion in a line. Without points of its own it has one point."""
    text, sign, points = line.rpartition(POINTS_SIGN)
    is_number = points.strip().removeprefix("-").removeprefix("+").isdecimal()
    # Nine digits are more than any limit, and int() of very many would take long.
    if component.points and sign and is_number and len(points.strip()) < 10:
        return {"text": " ".join(text.split()), "points": int(points)}
    return {"text": " ".join(line.split()), "points": 1}


def _normalise_item(item: Any) -> Any:
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, Mapping):
        return item
    item = {"points": 1, **compose_value(dict(item))}
    if isinstance(item.get("text"), str):
        item["text"] = " ".join(item["text"].split())
    # The text comes first, as people read it.
    return {"text": item.pop("text", None), **item}


def _find_item_error(component: Component, item: Any) -> str:
    """Return what is wrong with a criterion; "" if nothing is."""
    if not isinstance(item, Mapping) or set(item) != {"text", "points"}:
        return "needs text and points, and nothing else"
    text, points = item["text"], item["points"]
    if not isinstance(text, str) or not text.strip():
        return "write what a good answer does"
    most_chars = component.max_length or MAX_CHARS
    if len(text) > most_chars:
        return f"must be at most {format_characters(most_chars)}; it is {len(text)}"
    if FORBIDDEN_CHARACTERS.search(text):
        return "contains a control character; delete it"
    # True is an int, too.
    if not isinstance(points, int) or isinstance(points, bool):
        return "points must be a whole number"
    if not component.points and points != 1:
        return "all criteria of this task have 1 point"
    if points == 0 or abs(points) > MAX_POINTS:
        return f"points must be from -{MAX_POINTS} to {MAX_POINTS}, and not 0"
    return ""


def _find_list_errors(component: Component, subject: str, value: Sequence[Any]) -> list[str]:
    numbers_by_text: dict[str, int] = {}
    for number, item in enumerate(value, 1):
        text = item["text"].casefold()
        if text in numbers_by_text:
            shown = item["text"][:MAX_SHOWN_CHARS]
            earlier = numbers_by_text[text]
            return [f"{subject}: numbers {earlier} and {number} are the same, “{shown}”"]
        numbers_by_text[text] = number
    # No answer could gain a point, so no score could be told.
    if all(item["points"] < 0 for item in value):
        return [f"{subject}: at least one criterion must have points above 0"]
    return []


def _format_points(points: int) -> str:
    return "1 point" if points == 1 else f"{points} points"
