"""Each line is a row or has a reason; a task can be made from what rows show."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.loading import load_config
from validation.imports.config import MOST_LABELS, created_config
from validation.imports.rows import BadRow, ModelPrediction, parse_line
from validation.rules.consensus import Policy

ROW = {
    "task": "mood",
    "round": 1,
    "uid": "m-1",
    "context": {"prompt": "The bread was dry."},
    "input": {"text": "Хлеб 🍞 was fine."},
    "author": "w1",
    "author_label": "positive",
    "model_prediction": {"model": "m0", "label": "negative", "probs": {"negative": 0.75}},
    "model_wrong": True,
    "validations": [
        {"worker": "w2", "label": "positive"},
        {"worker": None, "label": "mixed"},
        {"worker": "w2", "verdict": "flagged"},
    ],
    "metadata": {"split": "dev"},
}
POLICIES = ("n-equal:3", "at-least:3", "strict", "plurality", "dawid-skene:0.8")


def encoded(**changes):
    return json.dumps({**ROW, **changes}, ensure_ascii=False).encode()


def test_a_whole_row():
    row = parse_line(encoded())
    assert (row.task, row.round, row.uid, row.author) == ("mood", 1, "m-1", "w1")
    assert row.input == {"text": "Хлеб 🍞 was fine."}
    assert row.answer == ModelPrediction("m0", "negative", {"negative": 0.75})
    assert row.votes == (("w2", "positive", ""), (None, "mixed", ""), ("w2", "", "flagged"))
    assert row.fooled is True


def test_what_a_source_does_not_tell():
    unknown = {"author": None, "author_label": None, "model_prediction": None}
    row = parse_line(
        encoded(
            **unknown, model_wrong=None, context={}, input={}, validations=[], metadata={}, round=0
        )
    )
    assert (row.author, row.author_label, row.answer, row.fooled) == (None, None, None, None)
    assert (row.votes, row.round) == ((), 0)


def test_escapes_and_a_byte_order_mark_are_fine():
    line = b"\xef\xbb\xbf" + json.dumps(ROW).encode() + b"\r\n"
    assert parse_line(line) == parse_line(encoded())
    assert parse_line(encoded(input={"text": "a\\u0000"})).input == {"text": "a\\u0000"}


MODEL = ROW["model_prediction"]
BAD = [
    ({"task": "Mood"}, 'task must be a code of lower-case letters, digits and hyphens, not "Mood"'),
    ({"round": -1}, "round must be a whole number from 0"),
    ({"round": True}, "round must be a whole number from 0 (0: not known), not true"),
    ({"round": "1"}, 'not "1"'),
    ({"uid": ""}, "uid must be a text of 1 to 200 characters"),
    ({"uid": "x" * 201}, "uid must be a text of 1 to 200 characters"),
    ({"context": None}, "context must be an object (it may be empty: {}), not null"),
    ({"input": "text"}, "input must be an object"),
    ({"metadata": []}, "metadata must be an object"),
    ({"author": 7}, "author must be a text, or null where it is not known, not 7"),
    ({"author": ""}, "author must be an id, or null"),
    ({"author_label": 1}, "author_label must be a text"),
    ({"model_prediction": "m0"}, "model_prediction must be an object, or null"),
    ({"model_prediction": {"model": "m", "label": "a"}}, "model_prediction lacks `probs`; add it"),
    ({"model_prediction": {**MODEL, "model": ""}}, "model_prediction.model must be the model's"),
    ({"model_prediction": {**MODEL, "label": None}}, "model_prediction.label must be a text"),
    ({"model_prediction": {**MODEL, "probs": []}}, "probs must be an object"),
    ({"model_prediction": {**MODEL, "probs": {"a": 1.5}}}, "probs.a must be a number from 0 to 1"),
    ({"model_prediction": {**MODEL, "probs": {"a": True}}}, "probs.a must be a number from 0 to 1"),
    ({"model_wrong": False}, "are different; mend one of the three"),
    ({"model_wrong": "yes"}, "model_wrong must be true, false or null"),
    ({"author_label": "negative"}, "are the same; mend one of the three"),
    ({"author_label": None}, "model_wrong must be null where"),
    ({"validations": {}}, "validations must be a list (it may be empty: [])"),
    ({"validations": ["positive"]}, "validations[0] must be an object"),
    ({"validations": [{"label": "a"}]}, "validations[0] lacks `worker`; add it"),
    ({"validations": [{"worker": "w"}]}, "validations[0] lacks `label`; add it"),
    ({"validations": [{"worker": 3, "label": "a"}]}, "validations[0].worker must be an id"),
    ({"validations": [{"worker": "w", "label": ""}]}, "validations[0].label must be a text of 1"),
    (
        {"validations": [{"worker": "w", "label": "a", "verdict": "correct"}]},
        "validations[0] has both a label and a verdict; leave one out",
    ),
    (
        {"validations": [{"worker": "w", "verdict": "right"}]},
        "validations[0].verdict must be one of correct, incorrect, flagged",
    ),
    ({"autor": "w"}, "the line has no field `autor`; did you mean `author`?"),
    ({"secret": 1}, "the line has no field `secret`; put it into metadata"),
    ({"input": {"text": "a\0b"}}, "input holds the null character (U+0000); delete it"),
]


@pytest.mark.parametrize(("changes", "reason"), BAD)
def test_what_is_wrong_and_how_to_mend_it(changes, reason):
    with pytest.raises(BadRow) as refused:
        parse_line(encoded(**changes))
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{'task': 1}", "not JSON at column 2"),
        (encoded()[:-9], "not JSON at column"),
        (b'{"task": "\xff"}', "byte 11 is not UTF-8; save the file as UTF-8"),
        (b"[]", "the line must be an object with one example, not []"),
        (b"{}", "the line lacks `task`; add it"),
        (b'{"a": NaN}', "NaN is no number that can be kept"),
        (b'{"a": 1e999}', "1e999 is no number that can be kept"),
        (b'{"a": ' + b"1" * 5000 + b"}", "too many digits"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"task": "\\ud800"}', "task holds half of a surrogate pair"),
    ],
)
def test_lines_that_are_no_rows(line, reason):
    with pytest.raises(BadRow) as refused:
        parse_line(line)
    assert reason in str(refused.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([*ROW, "other"]), json_values)
def test_any_value_gives_a_row_or_a_reason(name, value):
    line = json.dumps({**ROW, name: value}).encode()
    with suppress(BadRow):
        row = parse_line(line)
        json.dumps([row.context, row.input, row.metadata], ensure_ascii=False).encode()


@given(st.binary(max_size=40))
def test_any_bytes_give_a_reason(line):
    with pytest.raises(BadRow):
        parse_line(line)


names = st.lists(st.text(max_size=5) | st.sampled_from(["text", "label", "id", "uid"]), unique=True)


@given(
    names, names, st.sets(st.text(max_size=5), max_size=MOST_LABELS + 5),
    st.sampled_from(POLICIES), st.integers(0, 9),
)  # fmt: skip
def test_a_task_can_be_made_of_anything(context, inputs, labels, policy, votes):
    policy = Policy.parse(policy)
    config = load_config(created_config("my-task", context, inputs, labels, policy, votes))
    assert config.answer_field == "label"
    assert config.name == "My task"


def test_a_made_task_has_the_fields_and_labels_that_were_seen():
    labels = ["positive", "negative", "mixed"]
    config = load_config(
        created_config("mood", ["prompt"], ["text"], labels, Policy.parse("at-least:3"), 5)
    )
    assert config.component("label").values == ("mixed", "negative", "positive")
    assert config.model_fields == ("prompt", "text")
    assert (config.validation.mode, config.verdict.type) == ("label", "exact_match")
    assert Policy.from_votes(config.validation.votes) == Policy("at-least", 3, 5)


def test_many_answers_are_free_text():
    answers = [f"answer {n}" for n in range(MOST_LABELS + 1)]
    config = load_config(created_config("qa", ["passage"], ["question"], answers, None, 0))
    assert (config.validation.mode, config.verdict.type) == ("verdict", "string_f1")
