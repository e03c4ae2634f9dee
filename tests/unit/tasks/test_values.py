"""What an annotator may enter, field by field."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.components import Component, format_value
from tasks.config.loading import load_config, validate_inputs
from tasks.config.parsing import dump_yaml, read_yaml
from tasks.config.schema import TaskConfig
from tests.unit.tasks.config_texts import FULL, MINIMAL

CONTEXT = {"passage": "The red fox 🦊 saw the red fox.", "offers": ["one", "two"]}
CHOSEN = {"type": "candidates", "reference": "offers"}
RANKED = {**CHOSEN, "rank": True}
GOOD: dict[str, Any] = {
    "text": "A long enough post",
    "label": "hate",
    "kind": ["x"],
    "answer": {"text": "fox 🦊", "start": 8, "end": 13},
}
STORED = {"digest": "0" * 64, "mime": "image/png", "bytes": 9, "width": 3, "height": 3}
NOT_THERE = (
    "The answer must appear in the passage exactly as it is given, from start to end, which count "
    "code points, not UTF-16 units or bytes"
)


@pytest.mark.parametrize(
    ("change", "errors"),
    [
        ({}, {}),
        ({"sure": 0.75}, {}),
        ({"sure": 0}, {}),
        ({"label": "not-hate", "kind": None}, {}),
        ({"text": None}, {"text": "Enter your post"}),
        ({"text": " \n "}, {"text": "Enter your post"}),
        ({"text": "short"}, {"text": "Your post must be at least 8 characters"}),
        ({"text": "x" * 31}, {"text": "Your post must be at most 30 characters; it is 31"}),
        ({"text": "long enough\0"}, {"text": "Your post contains a control character; delete it"}),
        ({"text": 7}, {"text": "Your post must be a text"}),
        ({"label": None, "kind": None}, {"label": "Choose your label"}),
        ({"label": "Hate", "kind": None}, {"label": "Your label must be one of: hate, not-hate"}),
        ({"label": ["hate"], "kind": None}, {"label": "Your label must be one of: hate, not-hate"}),
        ({"kind": []}, {"kind": "Answer “What kind is it?”"}),
        ({"kind": "x"}, {"kind": "“What kind is it?” must be a list of choices"}),
        ({"kind": ["z"]}, {"kind": "“What kind is it?” has no choice “z”; use: x, y"}),
        ({"kind": ["x", "x"]}, {"kind": "“What kind is it?” names a choice twice"}),
        (
            {"label": "not-hate"},
            {"kind": "Leave this out: with your other answers it is not asked"},
        ),
        ({"answer": None}, {"answer": "Choose the answer in the passage"}),
        ({"answer": "red fox"}, {"answer": "The answer must have text, start and end"}),
        ({"answer": {"text": "fox", "start": 9, "end": 12}}, {"answer": NOT_THERE}),
        ({"answer": {"text": "fox", "start": -4, "end": -1}}, {"answer": NOT_THERE}),
        ({"answer": {"text": "", "start": 3, "end": 3}}, {"answer": NOT_THERE}),
        ({"answer": {"text": "T", "start": False, "end": True}}, {"answer": NOT_THERE}),
        ({"answer": {"text": "fox", "start": 8.0, "end": 11}}, {"answer": NOT_THERE}),
        ({"sure": 1.25}, {"sure": "sure must be at most 1"}),
        ({"sure": -1}, {"sure": "sure must be at least 0"}),
        ({"sure": 0.3}, {"sure": "sure must go in steps of 0.25 from 0"}),
        ({"sure": True}, {"sure": "sure must be a number"}),
        ({"sure": float("nan")}, {"sure": "sure must be a number"}),
        ({"other": 1}, {"other": "This task has no field “other”; leave it out"}),
    ],
)
def test_inputs_are_checked_strictly(change: dict[str, Any], errors: dict[str, str]) -> None:
    given_values = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    found = validate_inputs(load_config(FULL), CONTEXT, given_values)
    assert found == {name: [message] for name, message in errors.items()}


def one_field(**keys: Any) -> TaskConfig:
    data = read_yaml(MINIMAL).data
    data["context"] = read_yaml(FULL).data["context"]
    data["input"].append({"name": "it", **keys})
    return load_config(dump_yaml(data))


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        ({"type": "image"}, {**STORED, "alt": "A hare."}, None),
        ({"type": "image"}, {**STORED, "alt": " "}, "say in words"),
        ({"type": "image"}, {**STORED, "alt": "x" * 501}, "in at most 500 characters"),
        ({"type": "image"}, {**STORED, "alt": ["A hare."]}, "in at most 500 characters"),
        ({"type": "image"}, {"digest": STORED["digest"], "alt": "A hare."}, "is not stored here"),
        ({"type": "audio"}, STORED, "must be a recording"),
        ({"type": "image"}, "https://example.org/a.png", "is a link"),
        ({"type": "image"}, "javascript:alert(1)", "import an archive"),
        ({"type": "image"}, 1, "must be a picture"),
        ({"type": "image"}, "", "Add it"),
        ({"type": "number"}, 1e9, None),
        ({"type": "number", "step": 1}, 1.5, "in steps of 1 from 0"),
        ({"type": "prob", "single": True}, 0.3, None),
        ({"type": "prob", "single": True}, 1.3, "between 0 and 1"),
        ({"type": "span", "reference": "passage", "max_length": 3}, (4, 11), "at most 3 char"),
        ({"type": "span", "reference": "passage", "max_length": 3}, (4, 7), None),
        ({"type": "text", "min_length": 1}, " ", "Enter it"),
        ({"type": "text", "max_length": 1}, "ab", "at most 1 character; it is 2"),
        ({"type": "chat"}, [{"role": "user", "text": "Hi"}], None),
        ({"type": "chat"}, "Hi", "a list of turns"),
        ({"type": "chat"}, ["Hi"], "turn 1: needs role and text"),
        ({"type": "chat"}, [{"role": "me", "text": "Hi"}], "turn 1: the role"),
        ({"type": "chat"}, [{"role": "user", "text": 1}], "turn 1: the text"),
        ({"type": "candidates"}, ["one", "two"], None),
        ({"type": "candidates"}, ["one", 2], "a list of texts"),
        ({"type": "candidates"}, ["one"], "at least two"),
        ({"type": "candidates"}, ["one", "one"], "twice"),
        ({"type": "candidates"}, ["one", " two"], "spaces before"),
        ({"type": "candidates"}, ["one", ""], "empty texts"),
        ({"type": "candidates"}, ["one", "t\rwo"], "control character"),
        (CHOSEN, "one", None),
        (CHOSEN, "three", "one of the candidates"),
        (CHOSEN, 1, "one of the candidates"),
        (CHOSEN, ["one"], "one of the candidates"),
        (RANKED, ["two", "one"], None),
        (RANKED, ["two", "two"], "twice"),
        (RANKED, ["two"], "each of the 2"),
        (RANKED, ["two", "three"], "each of the 2"),
        (RANKED, [1, 2], "a list of texts"),
        (RANKED, {"one": "1", "two": "1"}, "a place of its own, from 1 to 2"),
    ],
)
def test_every_type_of_value(keys: dict[str, Any], value: Any, message: str | None) -> None:
    if isinstance(value, tuple):
        start, end = value
        value = {"text": CONTEXT["passage"][start:end], "start": start, "end": end}
    found = validate_inputs(one_field(**keys), CONTEXT, {"text": "x", "it": value})
    assert [message in text for text in found.get("it", [])] == ([True] if message else [])


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ([(4, 7, "a"), (8, 11, "b")], None),
        ([(4, 7, "a"), (4, 7, "b")], None),
        ([(4, 7, "a"), (4, 7, "a")], "the same mark twice"),
        ([(4, 7, "c")], "number 1: use one of a, b"),
        ([(4, 7, None)], "number 1: needs end, start, tag, text"),
    ],
)
def test_marked_stretches(marks: list[tuple[int, int, str | None]], message: str | None) -> None:
    passage = CONTEXT["passage"]
    value = [
        {"text": passage[a:b], "start": a, "end": b, **({"tag": tag} if tag else {})}
        for a, b, tag in marks
    ]
    config = one_field(type="spans", reference="passage", tags=["a", "b"])
    found = validate_inputs(config, CONTEXT, {"text": "x", "it": value})
    assert [message in text for text in found.get("it", [])] == ([True] if message else [])
    without = [{**mark, "text": "no"} for mark in value]
    assert "it" in validate_inputs(config, CONTEXT, {"text": "x", "it": without})
    assert "it" in validate_inputs(config, CONTEXT, {"text": "x", "it": "red"})


def test_probabilities_sum_to_one() -> None:
    data = read_yaml(FULL).data
    data["input"].append({"name": "belief", "type": "prob", "reference": "label"})
    data["examples"] = {}
    config = load_config(dump_yaml(data))
    for belief, message in [
        ({"hate": 0.25, "not-hate": 0.75}, None),
        ({"hate": 0.25, "not-hate": 0.7}, "sum to 1, not 0.95"),
        ({"hate": -1, "not-hate": 2}, "a number between 0 and 1 for each label"),
        (0.5, "a number between 0 and 1 for each label"),
    ]:
        found = validate_inputs(config, CONTEXT, {**GOOD, "belief": belief}).get("belief", [])
        assert [message in text for text in found] == ([True] if message else [])


PASSAGES = st.text(st.sampled_from("ab \U0001f98a\u0301"), min_size=1, max_size=20)


@given(PASSAGES, st.integers(-2, 22), st.integers(-2, 22), st.text("ab ", max_size=3))
def test_a_span_counts_exactly_when_it_is_there(
    passage: str, start: int, end: int, text: str
) -> None:
    value = {"text": text, "start": start, "end": end}
    errors = validate_inputs(SPAN_TASK, {"passage": passage}, {"text": "x", "it": value})
    is_there = text != "" and start >= 0 and end == start + len(text) and passage[start:end] == text
    assert ("it" not in errors) == is_there


SPAN_TASK = one_field(type="span", reference="passage")


def test_numbers_read_as_people_write_them() -> None:
    assert [format_value(value) for value in (2.0, 0.5, 3, None)] == ["2", "0.5", "3", ""]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ({"label": "Your NLI statement"}, "NLI statement"),
        ({"label": "Your statement", "judges_label": "What they wrote"}, "What they wrote"),
        ({"label": "Yourself"}, "Yourself"),
        ({}, "Text"),
    ],
)
def test_a_title_over_the_words_of_others_does_not_call_them_yours(said, found):
    assert Component(name="text", type="text", **said).third_person_title == found
