"""What a type of field must bring, and that each of ours brings it."""

from pathlib import Path
from typing import Any

import pytest
from django import forms

from annotation.writing.forms import build_form_field
from tasks.config.components import FIELD_TYPES, SECTIONS, Component, FieldType, FormInput
from tasks.config.field_types.spans import format_marks

KEYS: dict[str, Any] = {
    "reference": "passage",
    "labels": ("a", {"value": "b", "display": "the second"}),
    "minimum": 0.0,
    "maximum": 5.0,
}
WHOLE: dict[str, Any] = {
    "title": "Half",
    "place": 99,
    "keys": ("labels",),
    "sections": ("input",),
    "check": lambda *given: [],
    "build_form_input": lambda *given: FormInput(),
    "display": lambda *given: "",
    "describe_value": lambda *given: "a value",
}


def made(kind: str, **keys: Any) -> Component:
    return Component.model_validate({"name": "it", "type": kind, **keys}, strict=False)


@pytest.mark.parametrize("part", FieldType.PARTS)
def test_a_type_that_lacks_a_part_is_not_registered(part: str) -> None:
    parts = {name: value for name, value in WHOLE.items() if name != part}
    with pytest.raises(TypeError, match=f"lacks: {part}"):
        type("Half", (FieldType,), parts, name="half")
    assert "half" not in FIELD_TYPES


@pytest.mark.parametrize(
    ("name", "change"),
    [("text", {}), ("half", {"keys": ("colour",)}), ("half", {"sections": ("attic",)})],
)
def test_a_type_that_nothing_can_use_is_not_registered(name: str, change: dict[str, Any]) -> None:
    known = dict(FIELD_TYPES)
    with pytest.raises(TypeError):
        type("Half", (FieldType,), {**WHOLE, **change}, name=name)
    assert known == FIELD_TYPES


def test_the_docs_say_what_each_type_is_in_every_place() -> None:
    page = (Path(__file__).parents[3] / "docs/task-config.md").read_text()
    types = page.partition("\nTypes, where")[2].partition("\n\nIn CSV files")[0]
    named = {*types.split("`")[1::2]} & {*FIELD_TYPES}
    assert named == {name for name, kind in FIELD_TYPES.items() if kind.sections}


@pytest.mark.parametrize("name", FIELD_TYPES)
def test_each_type_can_be_asked_for_shown_and_described(name: str) -> None:
    kind = FIELD_TYPES[name]
    component = made(name, **{key: value for key, value in KEYS.items() if key in kind.keys})
    asked = kind.build_form_input(component)
    assert (asked is None) == (not {"input", "metadata"} & {*kind.sections})
    if asked:
        assert isinstance(build_form_field(component, {}), forms.Field)
    assert kind.display(component, None) == ""
    assert "red" in kind.display(component, ["a", {"text": "red"}])  # models answer anything
    assert kind.describe_value(component)
    shown = ("text", "long_text", "multiclass", "chat")
    assert (kind.build_placeholder(component) is None) == (name not in shown)
    assert {*kind.sections} <= {*SECTIONS}


@pytest.mark.parametrize(
    ("keys", "described"),
    [
        ({"type": "number"}, "a number"),
        ({"type": "number", "minimum": 1.0}, "a number from 1"),
        ({"type": "slider", "minimum": 0.0, "maximum": 0.5}, "a number from 0 to 0.5"),
        ({"type": "multiclass", "labels": ("a", "b")}, "one of a, b"),
        ({"type": "multiclass", "labels": ("a", "b, or c")}, "one of “a”, “b, or c”"),
        ({"type": "prob", "single": True}, "a probability"),
        ({"type": "candidates"}, "a list of texts"),
        ({"type": "candidates", "reference": "offers"}, "one of the texts of offers"),
        (
            {"type": "candidates", "reference": "offers", "rank": True},
            "the texts of offers, best first",
        ),
    ],
)
def test_a_description_tells_the_possible_values(keys: dict[str, Any], described: str) -> None:
    component = made(keys.pop("type"), **keys)
    assert component.kind.describe_value(component) == described


@pytest.mark.parametrize(
    ("typed", "kept"), [(3.0, 3), (3, 3), (3.5, 3.5), (1e300, 1e300), ("3", "3")]
)
def test_whole_numbers_of_forms_stay_whole(typed: Any, kept: Any) -> None:
    found = made("number").kind.parse_typed_value(made("number"), typed, {})
    assert (found, type(found)) == (kept, type(kept))


def test_labels_are_shown_in_their_words() -> None:
    component = made("multilabel", labels=KEYS["labels"])
    assert component.kind.display(component, ["a", "b"]) == "a, the second"


def test_many_labels_are_a_list_that_drops_down() -> None:
    few, many = made("multiclass", labels=[*"abcdefg"]), made("multiclass", labels=[*"abcdefgh"])
    assert few.kind.build_form_input(few).widget == "RadioSelect"  # type: ignore[union-attr]
    assert many.kind.build_form_input(many).widget == "Select"  # type: ignore[union-attr]
    assert many.kind.build_form_input(many).choices[0] == ("", "")  # type: ignore[union-attr]


def test_a_form_starts_a_span_with_its_text() -> None:
    span = FIELD_TYPES["span"]
    assert span.build_initial_value({"text": "red", "start": 4, "end": 7}) == "red"
    assert (
        span.build_initial_value("red") == FIELD_TYPES["text"].build_initial_value("red") == "red"
    )


TAGGED = {"reference": "passage", "tags": ("place", "time")}
TARN = {"text": "Tarn", "start": 4, "end": 8, "tag": "place"}
SIX = {"text": "six = 6", "start": 12, "end": 19, "tag": "time"}


@pytest.mark.parametrize(
    ("lines", "stored"),
    [
        ("Tarn @4 = place", [TARN]),
        ("\n Tarn @4 = place \r\nsix = 6 = time\n", [TARN, SIX]),
        ("", []),
    ],
)
def test_lines_are_marks(lines: str, stored: list[object]) -> None:
    spans, passage = made("spans", **TAGGED), {"passage": "Old Tarn at six = 6, Tarn."}
    assert spans.kind.parse_typed_value(spans, lines, passage) == stored
    assert spans.kind.check(spans, stored, passage) == []
    again = spans.kind.parse_typed_value(spans, format_marks(stored), passage)
    assert again == stored == spans.kind.parse_typed_value(spans, stored, passage)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        ("Tarn = place", ["line 1", "2 times", "Tarn @4", "Tarn @21"]),
        ("six = time\nTarn @5 = place", ["line 2", "does not begin at 5"]),
        ("six = time\nTran = place", ["line 2", "not in the passage"]),
        ("Tarn", ["line 1", "place, time"]),
        (" = place", ["line 1", "place, time"]),
        ("six = day", ["number 1", "place, time"]),
        ("six = time\nsix = time", ["same mark twice"]),
    ],
)
def test_a_line_that_is_no_mark_is_refused(lines: str, named: list[str]) -> None:
    spans, passage = made("spans", **TAGGED), {"passage": "Old Tarn at six = 6, Tarn."}
    stored = spans.kind.parse_typed_value(spans, lines, passage)
    (message,) = spans.kind.check(spans, stored, passage)
    assert all(words in message for words in named), message


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("Tarn", "must be a list"),
        ([{**TARN, "tag": "day"}], "use one of place, time"),
        ([{"text": "Tarn", "start": 4, "end": 8}], "needs end, start, tag, text"),
        ([{**TARN, "start": 3}], "is not in the passage there"),
        ([{**TARN, "start": "4"}], "is not in the passage there"),
    ],
)
def test_marks_from_elsewhere_are_checked(value: object, named: str) -> None:
    spans = made("spans", **TAGGED)
    (message,) = spans.kind.check(spans, value, {"passage": "Old Tarn at six = 6, Tarn."})
    assert named in message


def test_marks_without_tags_are_words_alone() -> None:
    spans, passage = made("spans", reference="passage"), {"passage": "a = b"}
    stored = spans.kind.parse_typed_value(spans, "a = b", passage)
    assert stored == [{"text": "a = b", "start": 0, "end": 5}]
    assert spans.kind.display(spans, stored) == format_marks(["a = b"]) == "a = b"
    assert format_marks(stored) == "a = b @0"
    assert format_marks(None) == ""
