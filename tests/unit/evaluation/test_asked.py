"""What a task asks of its models, for those who make one."""

from pathlib import Path

import pytest

from evaluation.contract import InvalidOutput
from evaluation.isolation.inference.exchange import answers_for
from evaluation.task_shape import (
    describe_model_shape,
    labels_of,
    make_runnable,
    model_config_text,
    runnable_shape_of,
    trainable_shape_of,
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
    shape = runnable_shape_of(official("vqa"))
    assert (shape.kind, *shape.fields) == ("visual-question-answering", "image", "question")
    assert runnable_shape_of(official("nli")) == trainable_shape_of(official("nli"))


@pytest.mark.parametrize("code", CODES)
def test_the_text_for_models_asks_the_same_of_them(code):
    config = official(code)
    told = load_config(model_config_text(config))
    assert (told.ordered_fields, told.answer_field) == (config.ordered_fields, config.answer_field)
    assert labels_of(told) == labels_of(config)
    assert trainable_shape_of(told) == trainable_shape_of(config)
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
    assert (model.fields, model.labels) == (("text",), labels_of(official("hate-speech")))


def test_no_folder_can_be_run_for_a_translation():
    told = describe_model_shape(load_config(TRANSLATION))
    assert (told["kind"], told["type"], told["output"]) == (None, "text", "target")


def test_an_answer_of_another_type_is_checked_by_its_field_type():
    topics = "{name: target, type: multilabel, labels: [news, sport]}"
    config = load_config(
        TRANSLATION.replace("{name: target, type: text}", topics).replace("bleu", "accuracy")
    )
    answers = answers_for(config, ["one", "two"])
    answers.take(b'{"id": "one", "output": {"target": ["news"]}}')
    with pytest.raises(InvalidOutput):
        answers.take(b'{"id": "two", "output": {"target": "weather"}}')
    assert answers.missing() == 1
