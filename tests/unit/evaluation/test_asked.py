"""What a task asks of its models, for those who make one."""

from pathlib import Path

import pytest

from evaluation.contract import InvalidOutput
from evaluation.isolation.inference.exchange import build_collected_answers
from evaluation.task_shape import (
    build_runnable_shape,
    build_trainable_shape,
    describe_model_shape,
    format_model_config,
    get_labels,
    make_runnable,
)
from tasks.config.loading import load_config
from tasks.config.schema import TaskConfig

OFFICIAL = Path(__file__).parents[3] / "tasks" / "official"
CODES = ("nli", "qa", "sentiment", "hate-speech")
TRANSLATION = """
version: 1
name: Translation
goal: {text: Write a sentence}
input: [{name: source, type: text}]
output: [{name: target, type: text}]
verdict: {type: ask_user}
metrics: {main: bleu}
"""


def official(code: str) -> TaskConfig:
    return load_config((OFFICIAL / code / "task.yaml").read_text())


def test_models_that_look_at_pictures_can_be_run():
    shape = build_runnable_shape(official("vqa"))
    assert (shape.kind, *shape.fields) == ("visual-question-answering", "image", "question")
    assert build_runnable_shape(official("nli")) == build_trainable_shape(official("nli"))


@pytest.mark.parametrize("code", CODES)
def test_the_text_for_models_asks_the_same_of_them(code):
    config = official(code)
    told = load_config(format_model_config(config))
    assert (told.ordered_fields, told.answer_field) == (config.ordered_fields, config.answer_field)
    assert get_labels(told) == get_labels(config)
    assert build_trainable_shape(told) == build_trainable_shape(config)
    assert told.instructions == ""
    assert not told.examples.good


def test_what_a_model_must_be():
    assert describe_model_shape(official("qa")) == {
        "kind": "extractive-qa",
        "type": "span",
        "fields": ("question", "passage"),
        "output": "answer",
        "labels": None,
    }
    assert describe_model_shape(official("hate-speech"))["fields"] == ("text",)
    model = make_runnable(official("hate-speech"))
    assert (model.fields, model.labels) == (("text",), get_labels(official("hate-speech")))


def test_no_folder_can_be_run_for_a_translation():
    told = describe_model_shape(load_config(TRANSLATION))
    assert (told["kind"], told["type"], told["output"]) == (None, "text", "target")


def test_an_answer_of_another_type_is_checked_by_its_field_type():
    topics = "{name: target, type: multilabel, labels: [news, sport]}"
    config = load_config(
        TRANSLATION.replace("{name: target, type: text}", topics).replace("bleu", "accuracy")
    )
    answers = build_collected_answers(config, ["one", "two"])
    answers.take(b'{"id": "one", "output": {"target": ["news"]}}')
    with pytest.raises(InvalidOutput):
        answers.take(b'{"id": "two", "output": {"target": "weather"}}')
    assert answers.count_missing() == 1
