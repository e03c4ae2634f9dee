"""What a task's models read and answer, and which examples can teach them."""

import json
import runpy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.seeds import read_seed_rows
from evaluation.task_shape import (
    UntrainableTask,
    build_released_row,
    build_runnable_shape,
    build_trainable_shape,
    build_training_row,
)
from evaluation.training.data import check_rows
from serving.spec import PAIR, SEQUENCE, SPAN
from tasks.config.loading import load_config
from tasks.services import OFFICIAL_FOLDER
from tests.unit.tasks.config_texts import MINIMAL

SPAN_TASK = """\
version: 1
name: Spans
goal: {text: Ask}
context: [{name: story, type: long_text}]
input: [{name: ask, type: text}, {name: said, type: span, reference: story}]
output: [{name: said, type: span, reference: story}]
verdict: {type: string_f1, field: said}
metrics: {main: squad_f1}
"""


def official(code: str):
    return load_config((OFFICIAL_FOLDER / code / "task.yaml").read_text())


@pytest.mark.parametrize(
    ("code", "kind", "fields", "answer"),
    [
        ("nli", PAIR, ("premise", "hypothesis"), "label"),
        ("sentiment", SEQUENCE, ("text",), "label"),
        ("hate-speech", SEQUENCE, ("text",), "label"),
        ("qa", SPAN, ("question", "passage"), "answer"),
    ],
)
def test_the_official_tasks_can_be_trained(code, kind, fields, answer):
    shape = build_trainable_shape(official(code))
    assert (shape.kind, shape.fields, shape.answer) == (kind, fields, answer)
    assert (shape.labels is None) == (kind == SPAN)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (MINIMAL, "models read text and answer answer"),
        (MINIMAL.replace("name: text, type: text", "name: text, type: image"), "isn't a text"),
    ],
)
def test_other_tasks_are_refused_in_words(text, said):
    with pytest.raises(UntrainableTask, match=said):
        build_trainable_shape(load_config(text))


def test_fields_with_other_names_keep_them_for_the_target():
    shape = build_trainable_shape(load_config(SPAN_TASK))
    assert shape.fields == ("ask", "story")
    fields = {"story": "A fox. A red fox.", "ask": "Who?"}
    row = build_training_row(shape, fields, {"text": "fox", "start": 13, "end": 16})
    assert row == {
        "question": "Who?",
        "passage": "A fox. A red fox.",
        "answer": "fox",
        "answer_start": 13,
    }
    assert shape.select_inputs(row) == fields


@pytest.mark.parametrize("start", [None, -4, 4, 99, "13"])
def test_a_span_without_a_true_offset_is_sought(start):
    shape = build_trainable_shape(load_config(SPAN_TASK))
    fields = {"story": "A fox. A red fox.", "ask": "Who?"}
    assert build_training_row(shape, fields, {"text": "fox", "start": start})["answer_start"] == 2
    assert build_training_row(shape, fields, "red")["answer_start"] == 9


@pytest.mark.parametrize("answer", ["wolf", "", " ", None, {"text": 5}, {}])
def test_a_span_that_is_not_there_teaches_nothing(answer):
    shape = build_trainable_shape(load_config(SPAN_TASK))
    assert build_training_row(shape, {"story": "A fox.", "ask": "Who?"}, answer) is None


def test_a_label_that_the_task_does_not_have_teaches_nothing():
    shape = build_trainable_shape(official("sentiment"))
    assert build_training_row(shape, {"text": "Fine."}, "mixed") is None
    assert build_training_row(shape, {"text": "Fine."}, "positive") is not None
    assert build_training_row(shape, {"text": " "}, "positive") is None
    assert build_training_row(shape, {"prompt": "Fine."}, "positive") is None


texts = st.one_of(st.none(), st.integers(), st.text(max_size=12))


@given(texts, texts, st.one_of(texts, st.sampled_from(["neutral", "entailment"])))
def test_every_row_that_comes_out_can_be_trained_on(premise, hypothesis, answer):
    shape = build_trainable_shape(official("nli"))
    row = build_training_row(shape, {"premise": premise, "hypothesis": hypothesis}, answer)
    if row:
        other = {"premise": "another", "hypothesis": "one", "label": "neutral"}
        check_rows([row, {**other, "group": "g"}], kind=shape.kind, labels=shape.labels)


@given(st.text(max_size=20), st.text(max_size=4), st.integers(-3, 30))
def test_every_span_that_comes_out_can_be_trained_on(story, said, start):
    shape = build_trainable_shape(load_config(SPAN_TASK))
    row = build_training_row(shape, {"story": story, "ask": "Who?"}, {"text": said, "start": start})
    if row:
        other = {"passage": "A", "question": "?", "answer": "A", "answer_start": 0, "group": "g"}
        check_rows([row, other], kind=SPAN, labels=None)


def test_a_released_row_brings_what_is_right_and_its_author():
    line = {
        "uid": "u1",
        "anon_uid": "a1",
        "context": {"premise": "It rained."},
        "input_json": {"hypothesis": "It was dry.", "label": "neutral"},
        "label": "contradiction",
    }
    shape = build_trainable_shape(official("nli"))
    row = build_released_row(shape, line)
    assert row == {
        "premise": "It rained.",
        "hypothesis": "It was dry.",
        "label": "contradiction",
        "group": "a1",
    }
    assert build_released_row(shape, {**line, "anon_uid": None})["group"] == "u1"
    assert build_released_row(shape, {**line, "label": "mixed"}) is None
    span = {
        **line,
        "context": {"story": "A fox."},
        "input_json": {"ask": "Who?", "said": {"text": "fox", "start": 2, "end": 5}},
        "label": "fox",
    }
    assert (
        build_released_row(build_trainable_shape(load_config(SPAN_TASK)), span)["answer_start"] == 2
    )


def test_the_shipped_seeds_all_teach():
    for code in ("nli", "sentiment", "hate-speech"):
        shape = build_trainable_shape(official(code))
        with (OFFICIAL_FOLDER / code / "seed.jsonl").open() as file:
            rows = [json.loads(line) for line in file]
        assert all(build_training_row(shape, row, row["label"]) for row in rows)


def test_the_scene_rows_are_those_that_their_script_makes():
    scenes = [row for row in read_seed_rows("nli") if row["group"].startswith("nli-scene-")]
    assert scenes == list(runpy.run_path("scripts/nli_scenes.py")["rows"]())


def test_a_row_of_a_picture_alone_has_its_digest() -> None:
    config = load_config("""
version: 1
name: Pictures
goal: {text: Write}
context: [{name: photo, type: image}]
input: [{name: label, type: multiclass, labels: [cat, dog]}]
output: [{name: label, type: multiclass}]
verdict: {type: exact_match, fields: [label]}
metrics: {main: accuracy}
""")
    shape = build_runnable_shape(config)
    row = build_training_row(shape, {"photo": {"digest": "0" * 64}}, "cat")
    assert row == {"image": "0" * 64, "label": "cat"}
    assert build_training_row(shape, {"photo": None}, "cat") is None
