"""What a type of field must bring, and that each of ours brings it."""

from typing import Any

import pytest
from django import forms

from annotation.writing.forms import form_field
from tasks.config.components import FIELD_TYPES, PLACES, Component, FieldType, FormInput

KEYS: dict[str, Any] = {
    "reference": "passage",
    "labels": ("a", {"value": "b", "display": "the second"}),
    "minimum": 0.0,
    "maximum": 5.0,
}
WHOLE: dict[str, Any] = {
    "keys": ("labels",),
    "places": ("input",),
    "check": lambda *given: [],
    "form_input": lambda *given: FormInput(),
    "display": lambda *given: "",
    "described": lambda *given: "a value",
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
    [("text", {}), ("half", {"keys": ("colour",)}), ("half", {"places": ("attic",)})],
)
def test_a_type_that_nothing_can_use_is_not_registered(name: str, change: dict[str, Any]) -> None:
    known = dict(FIELD_TYPES)
    with pytest.raises(TypeError):
        type("Half", (FieldType,), {**WHOLE, **change}, name=name)
    assert known == FIELD_TYPES


@pytest.mark.parametrize("name", FIELD_TYPES)
def test_each_type_can_be_asked_for_shown_and_described(name: str) -> None:
    kind = FIELD_TYPES[name]
    component = made(name, **{key: value for key, value in KEYS.items() if key in kind.keys})
    asked = kind.form_input(component)
    assert (asked is None) == (not {"input", "metadata"} & {*kind.places})
    if asked:
        assert isinstance(form_field(component, {}), forms.Field)
    assert kind.display(component, None) == ""
    assert "red" in kind.display(component, ["a", {"text": "red"}])  # models answer anything
    assert kind.described(component)
    assert (kind.stand_in(component) is None) == (name not in ("text", "long_text", "multiclass"))
    assert {*kind.places} <= {*PLACES}


@pytest.mark.parametrize(
    ("keys", "described"),
    [
        ({"type": "number"}, "a number"),
        ({"type": "number", "minimum": 1.0}, "a number from 1"),
        ({"type": "slider", "minimum": 0.0, "maximum": 0.5}, "a number from 0 to 0.5"),
        ({"type": "multiclass", "labels": ("a", "b")}, "one of a, b"),
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
    assert component.kind.described(component) == described


def test_labels_are_shown_in_their_words() -> None:
    component = made("multilabel", labels=KEYS["labels"])
    assert component.kind.display(component, ["a", "b"]) == "a, the second"


def test_many_labels_are_a_list_that_drops_down() -> None:
    few, many = made("multiclass", labels=[*"abcdefg"]), made("multiclass", labels=[*"abcdefgh"])
    assert few.kind.form_input(few).widget == "RadioSelect"  # type: ignore[union-attr]
    assert many.kind.form_input(many).widget == "Select"  # type: ignore[union-attr]


def test_a_form_starts_a_span_with_its_text() -> None:
    span = FIELD_TYPES["span"]
    assert span.typed({"text": "red", "start": 4, "end": 7}) == "red"
    assert span.typed("red") == FIELD_TYPES["text"].typed("red") == "red"
