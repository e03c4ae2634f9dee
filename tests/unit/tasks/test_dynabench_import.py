"""Configurations of Dynabench 1.0 become ours, and what is lost is named."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.config.components import Condition
from tasks.config.dynabench1 import convert_config
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError
from tasks.config.schema import TaskConfig

SHAPES = Path(__file__).parents[2] / "fixtures" / "dynabench1"
ADD = "The file holds no name, summary, language, instructions or examples; add them."


def imported(shape: str) -> tuple[TaskConfig, list[str]]:
    converted = convert_config((SHAPES / f"{shape}.yaml").read_text(), name=shape)
    config = load_config(converted.config_yaml_text)
    assert converted.notes[0] == ADD
    return config, converted.notes[1:]


def test_all_seven_shapes_are_here() -> None:
    names = {path.stem for path in SHAPES.glob("*.yaml")}
    assert names == {"nli", "hate_speech", "qa", "sentiment", "vqa", "flores", "dataperf"}


@pytest.mark.parametrize(
    ("shape", "targets", "reads", "verdict", "main"),
    [
        ("nli", ("label",), ("context", "hypothesis"), "exact_match", "accuracy"),
        ("hate_speech", ("label",), ("statement",), "exact_match", "macro_f1"),
        ("qa", ("answer",), ("passage", "question"), "string_f1", "squad_f1"),
        ("sentiment", ("label",), ("prompt", "statement"), "exact_match", "macro_f1"),
        ("vqa", (), ("image", "question"), "ask_user", "vqa_accuracy"),
        (
            "flores",
            ("targetText",),
            ("sourceLanguage", "targetLanguage", "sourceText"),
            "ask_user",
            "chrf_pp",
        ),
        ("dataperf", ("label",), ("image",), "ask_user", "dataperf_f1"),
    ],
)
def test_each_shape(
    shape: str, targets: tuple[str, ...], reads: tuple[str, ...], verdict: str, main: str
) -> None:
    config, _ = imported(shape)
    assert config.name == shape
    assert config.target_fields == targets
    assert config.model_fields == reads
    assert config.verdict.type == verdict
    assert config.metrics.main == main


def test_goal_conditions_and_weights_are_carried_over() -> None:
    config, notes = imported("nli")
    assert notes == []
    assert config.goal_choices == ("entailed", "neutral", "contradictory")
    assert config.goal.text.endswith(": {label}")
    conditions = [question.when for question in config.metadata.create]
    assert conditions == [None, Condition(outcome="not_fooled"), Condition(outcome="fooled")]
    verdicts = [question.when for question in config.metadata.validate]
    assert verdicts == [Condition(verdict="incorrect"), Condition(verdict="flagged")]
    assert not any(q.required for q in (*config.metadata.create, *config.metadata.validate))
    assert config.get_component("hypothesis").placeholder == "Enter a sentence"
    assert config.weights["throughput"] == 1
    assert config.weights["accuracy"] == 4
    assert config.get_component("prob").reference == "label"


def test_the_warning_makes_a_task_sensitive() -> None:
    config, _ = imported("hate_speech")
    assert config.content_warning is not None
    assert config.content_warning.text == "You will read hurtful sentences here."


def test_a_span_keeps_its_reference_and_threshold() -> None:
    config, notes = imported("qa")
    assert notes == []
    assert [c.reference for c in (*config.input[1:], *config.output[:1])] == ["passage", "passage"]
    assert config.verdict.type == "string_f1"
    assert config.verdict.threshold == 0.4
    assert config.get_component("confidence").single


def test_what_has_no_counterpart_is_named() -> None:
    assert "sp_bleu" in imported("flores")[1][0]
    assert "target_answer_2" in imported("vqa")[1][0]


BASE: dict[str, Any] = {
    "input": [{"name": "text", "type": "string"}, {"name": "label", "type": "multiclass"}],
    "output": [{"name": "label"}],
    "perf_metric": {"type": "accuracy", "reference_name": "label"},
}
TEXT = {"name": "text", "type": "string"}
LABEL = {"name": "label", "type": "multiclass", "labels": ["a", "b"]}


@pytest.mark.parametrize("kind", ["string", "image"])
def test_training_files_become_training_rows(kind: str) -> None:
    read = {**TEXT, "type": kind}
    given = {**BASE, "input": [read, LABEL], "train_file_metric": {"type": "dataperf"}}
    made = convert_config(json.dumps(given))
    assert load_config(made.config_yaml_text).training_rows == 1000
    assert not any("train_file_metric" in note for note in made.notes)
    both = convert_config(
        json.dumps({**given, "input": [read, {**read, "name": "two", "type": "image"}, LABEL]})
    )
    assert load_config(both.config_yaml_text).training_rows is None


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"user_input": []}, "`user_input` is not carried over"),
        ({"input": [TEXT, {**LABEL, "labels": ["a"]}]}, "fewer than 2 labels"),
        ({"input": [TEXT, {**LABEL, "labels": ["a", "b", "b", None]}]}, "equal or empty labels"),
        ({"input": [TEXT, {**LABEL, "type": "video"}]}, "the type video is unknown"),
        ({"input": [TEXT, {**LABEL, "colour": "red"}]}, "`input.label.colour`"),
        ({"input": [{"name": "tag", "type": "string"}, LABEL]}, "is now called tag_field"),
        ({"input": [{"name": "1st-text", "type": "string"}, LABEL]}, "called field_1st_text"),
        ({"input": [TEXT, {"type": "string"}, LABEL]}, "items without a name"),
        ({"input": "text"}, "`input` is not carried over: it is not a list"),
        ({"input": []}, "There was no input"),
        ({"output": []}, "There was no output"),
        ({"input": [LABEL]}, "There was too little to write"),
        ({"input": [TEXT, {**LABEL, "type": "prob"}]}, "no prob is possible here"),
        (
            {"input": [TEXT, {"name": "label", "type": "context_string_selection"}]},
            "its reference is no string of the context",
        ),
        (
            {"context": [{**LABEL, "name": "kinds", "type": "multilabel"}]},
            "no multilabel is possible",
        ),
        (
            {"input": [{**TEXT, "as_goal_message": True}, LABEL]},
            "only one multiclass field can be the goal",
        ),
        (
            {"output": [LABEL, {"name": "p", "type": "prob", "reference_name": "x"}]},
            "its reference is now label",
        ),
        ({"metadata": []}, ""),
        ({"metadata": ["x"]}, "`metadata` is not carried over"),
        ({"metadata": {"review": []}}, "`metadata.review`"),
        (
            {"metadata": {"create": [{**TEXT, "validated_label_condition": "correct"}]}},
            "its condition is not carried over",
        ),
        ({"model_wrong_metric": {"type": "exact_match", "reference_names": ["x"]}}, "asked"),
        ({"model_wrong_metric": {"type": "string_f1", "reference_name": "label"}}, "asked"),
        ({"perf_metric": {"type": "vibes"}}, "vibes is not carried over"),
        ({"perf_metric": {"type": "bleu", "reference_name": "text"}}, "label is scored, not text"),
        ({"delta_metrics": ["speed"]}, "speed is not carried over"),
        ({"aggregation_metric": "mean"}, "mean is not carried over"),
        (
            {"aggregation_metric": {"type": "dynascore", "default_weights": {"bleu": 1}}},
            "the weight of bleu",
        ),
    ],
)
def test_odd_files_still_give_a_task(change: dict[str, Any], note: str) -> None:
    converted = convert_config(json.dumps({**BASE, "input": [TEXT, LABEL], **change}))
    load_config(converted.config_yaml_text)
    assert note in " ".join(converted.notes[1:])


def test_a_missing_threshold_becomes_the_published_one() -> None:
    rule = {"type": "string_f1", "reference_name": "answer"}
    answer = {"name": "answer", "type": "string"}
    given_text = json.dumps(
        {"input": [TEXT, answer], "output": ["answer"], "model_wrong_metric": rule}
    )
    converted = convert_config(given_text)
    verdict = load_config(converted.config_yaml_text).verdict
    assert verdict.type == "string_f1"
    assert verdict.threshold == 0.4
    assert any("threshold" in note for note in converted.notes)


def test_no_yaml_no_task() -> None:
    with pytest.raises(ConfigError):
        convert_config("- just\n- a list")


NAMES = st.sampled_from(["text", "label", "tag", "answer", "a_start", "a", "first-name", "ü"])
COMPONENTS = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "type": st.sampled_from(
            ["string", "image", "multiclass", "multilabel", "context_string_selection", "prob", "x"]
        ),
        "labels": st.lists(st.sampled_from(["yes", "no", True, 0, 1.5, None, "", " a "])),
        "display_name": st.sampled_from(["A label", "", None]),
        "placeholder": st.just("Type here"),
        "reference_name": NAMES,
        "as_goal_message": st.booleans(),
        "single_prob": st.booleans(),
        "model_wrong_condition": st.booleans(),
        "validated_label_condition": st.sampled_from(["correct", "incorrect", "flagged", "odd"]),
    },
)
FIELDS = st.lists(COMPONENTS | NAMES, max_size=4)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "goal_message": st.sampled_from(["Write", "Write {label}", "", "a: b"]),
        "content_warning": st.sampled_from(["Careful", "", None]),
        "context": FIELDS,
        "input": FIELDS,
        "output": FIELDS,
        "metadata": st.fixed_dictionaries({}, optional={"create": FIELDS, "validate": FIELDS}),
        "model_wrong_metric": st.fixed_dictionaries(
            {"type": st.sampled_from(["exact_match", "string_f1", "ask_user", "odd"])},
            optional={
                "reference_names": st.lists(NAMES, max_size=2),
                "reference_name": NAMES,
                "threshold": st.sampled_from([0.4, 0, 1, 2, True, "x"]),
            },
        ),
        "perf_metric": st.sampled_from(["bleu", "odd", {"type": "accuracy"}, ["bleu", "bleu"]]),
        "delta_metrics": st.lists(st.sampled_from(["fairness", {"type": "robustness"}, "odd"])),
        "aggregation_metric": st.fixed_dictionaries(
            {"type": st.just("dynascore")},
            optional={
                "default_weights": st.dictionaries(
                    st.sampled_from(["accuracy", "bleu", "fairness", "examples_per_second"]),
                    st.sampled_from([0, 1, 4.5, -1, "x", True]),
                )
            },
        ),
    },
)


@settings(max_examples=60, deadline=None)
@given(FILES)
def test_whatever_the_shape_the_result_loads(file: dict[str, Any]) -> None:
    config = load_config(convert_config(json.dumps(file)).config_yaml_text)
    assert config.input
    assert config.answer_field
    assert config.model_fields
