"""Configurations of Dynabench 2.0 become ours, or it is said where they cannot."""

from pathlib import Path

import pytest

from tasks.config.dynabench1 import convert_config
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError

SHAPES = Path(__file__).parents[2] / "fixtures" / "dynabench2"
NLI, QA = ((SHAPES / f"{shape}.yaml").read_text() for shape in ("nli", "qa"))


def imported(text):
    converted = convert_config(text)
    return load_config(converted.config_yaml_text), converted.notes[1:]


def test_what_people_choose_read_and_write_becomes_fields():
    config, notes = imported(NLI)
    assert notes == []
    assert config.goal_choices == ("entailed", "neutral", "contradictory")
    assert [(one.name, one.type) for one in config.context] == [("context", "text")]
    assert [one.name for one in config.input] == ["hypothesis", "label"]
    assert config.get_component("hypothesis").placeholder == "Enter a sentence"
    assert config.target_fields == ("label",)
    assert (config.verdict.type, config.metrics.main) == ("exact_match", "accuracy")


def test_a_marked_answer_gets_the_name_of_the_models():
    config, notes = imported(QA)
    assert notes == []
    assert config.goal.text == "Ask something that the model answers wrongly"
    assert config.get_component("answer").reference == "passage"
    assert config.target_fields == ("answer",)
    assert (config.verdict.type, config.verdict.threshold) == ("string_f1", 0.4)


def test_a_task_without_a_context_and_with_a_choice_in_its_input():
    text = """
    user_input:
      - {type: text, field_name_for_the_model: statement}
      - {type: multioptions, field_name_for_the_model: label, options: [good, bad]}
    output: [label]
    """
    config, _ = imported(text)
    assert config.context == ()
    assert [label.value for label in config.get_labels("label")] == ["good", "bad"]
    assert config.goal.text


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("type: plain-text\n  field_names", "type: chatbot\n  field_names", "context"),
        ("type: multioptions", "type: radio-button-options", "goal"),
        ("- type: text", "- type: simple-slider", "user_input[0]"),
        ("    field_name_for_the_model: hypothesis\n", "", "user_input[0]"),
        ("  options: [entailed, neutral, contradictory]\n", "", "goal"),
    ],
)
def test_what_has_no_counterpart_is_refused_where_it_stands(before, after, where):
    assert before in NLI
    with pytest.raises(ConfigError) as refused:
        convert_config(NLI.replace(before, after))
    [problem] = refused.value.problems
    assert problem.path.startswith(where)
    assert problem.line > 1
    assert problem.fix
