"""A label is read by one rule wherever a value names it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from evaluation.isolation.sandbox.harness.loading import _spell_labels_as_task
from serving.errors import MisconfiguredError
from serving.spec import ModelSpec, open_folder
from tasks.config.components import Component
from tasks.config.loading import check_config, load_config
from tasks.config.parsing import ConfigError
from tasks.config.values import normalise_values
from tasks.datasets.tables import _name_label
from tasks.formats.base import format_answer, translate_value
from tasks.line_files import BadRow
from tasks.targets.endpoints.answers import read_output, read_prob
from tasks.targets.endpoints.base import QA_KIND, EndpointError

CONFIG = """version: 1
name: Drinks
goal: {text: G}
input:
  - {name: text, type: long_text}
  - name: label
    type: multiclass
    labels:
      - LABEL_1
      - tea
      - LABEL_2
output: [label]
verdict: {type: exact_match, fields: [label]}
metrics: {main: accuracy}
"""


def config(one: str, two: str) -> str:
    return CONFIG.replace("LABEL_1", one).replace("LABEL_2", two)


@pytest.mark.parametrize("two", ["cafe\u0301", '"caf\u00e9 "', '"\\u00a0caf\u00e9"'])
def test_labels_that_nobody_can_tell_apart_are_refused_by_line(two):
    with pytest.raises(ConfigError) as refused:
        load_config(config("caf\u00e9", two))
    (problem,) = refused.value.problems
    assert problem.path in ("input[1].labels[2]", "input[1].labels")
    assert problem.line in (8, 9, 11)


@pytest.mark.parametrize(
    ("one", "two"), [("US", "us"), ("ﬁn", "FIN"), ("ΟΔΟΣ", "οδος"), ('"1"', '"１"')]
)
def test_labels_that_differ_in_case_or_form_alone_cannot_be_saved(one, two):
    text = config(one, two)
    assert load_config(text)  # a task that has them already is still read
    found, problems = check_config(text)
    errors = [problem for problem in problems if problem.severity == "error"]
    assert found is None
    assert [(problem.path, problem.line) for problem in errors] == [("input[1].labels[2]", 11)]


LABELS = Component(name="label", type="multiclass", labels=["Good", "bad", "1"])
FIELDS = (
    LABELS,
    Component(name="text", type="long_text"),
    Component(name="kinds", type="multilabel", labels=["a", "b"]),
    Component(name="talk", type="chat"),
    Component(name="number", type="number"),
)


def test_what_a_person_or_program_sends_is_kept_in_one_form():
    turns = [{"role": "user", "text": "e\u0301"}]
    sent = {"label": " GOOD", "text": "e\u0301", "kinds": ["B ", "c"], "talk": turns, "number": 1.0}
    kept = normalise_values(FIELDS, sent)
    assert kept == {
        "label": "Good",
        "text": "é",
        "kinds": ["b", "c"],
        "talk": [{"role": "user", "text": "é"}],
        "number": 1.0,
    }
    assert normalise_values(FIELDS, {"label": 1.0, "text": 3, "kinds": "a"}) == {
        "label": "1",
        "text": 3,
        "kinds": "a",
    }
    assert normalise_values(FIELDS, {"label": "worse"}) == {"label": "worse"}


def test_a_targets_label_is_the_tasks():
    about = SimpleNamespace(output="label", labels=("Good", "bad", "1"), kind="", answer=None)
    assert read_output(about, {}, {"label": "good "}) == {"label": "Good"}
    assert read_output(about, {}, {"label": 1}) == {"label": "1"}
    assert read_prob(about, {"GOOD": 0.75, "bad": 0.25}) == {"Good": 0.75, "bad": 0.25}
    for bad in ("worse", None, 2):
        with pytest.raises(EndpointError):
            read_output(about, {}, {"label": bad})
    free = SimpleNamespace(output="answer", labels=None, kind="", answer=None)
    assert read_output(free, {}, {"answer": "e\u0301"}) == {"answer": "é"}


def test_a_folders_labels_are_spelled_as_the_task_does():
    assert _spell_labels_as_task(["us", "US"], ["US", "us"]) == ("us", "US")
    assert _spell_labels_as_task([1, 0], ["0", "1"]) == ("1", "0")
    with pytest.raises(MisconfiguredError):
        _spell_labels_as_task([0, 1], ["0", "2"])


def test_whole_numbers_in_a_folder_are_labels(tmp_path: Path):
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    (tmp_path / "dynabench.json").write_text('{"labels": [0, 1]}')
    assert open_folder(ModelSpec("m", str(tmp_path))).labels == ("0", "1")


def test_a_hubs_classes_are_read_by_number_however_it_is_written():
    names = ["no", "yes"]
    assert [_name_label(value, names) for value in (1, 1.0, "1", "1.0", "yes", -1)] == [
        *("yes", "yes", "yes", "yes", "yes"),
        None,
    ]
    assert _name_label([0, 0.5], names) == ["no", 0.5]


def test_a_tools_value_is_our_word():
    known = {"entailment": "entailment", "1": "neutral"}
    assert [translate_value(value, known, "l", "SNLI") for value in ("Entailment ", 1, 1.0)] == [
        "entailment",
        "neutral",
        "neutral",
    ]
    with pytest.raises(BadRow):
        translate_value("other", known, "l", "SNLI")
    assert [format_answer(value) for value in (4.0, " x ", True, 0.5)] == ["4", "x", "true", "0.5"]


def test_a_stretch_is_found_in_whatever_form_it_is_given():
    passage, apart = "Ren\u00e9 met Zo\u00eb.", "Zoe\u0308"
    span = Component(name="answer", type="span", reference="passage")
    stretch = {"text": "Zo\u00eb", "start": 9, "end": 12}
    assert span.kind.parse_typed_value(span, apart, {"passage": passage}) == stretch
    about = SimpleNamespace(output="answer", labels=None, kind=QA_KIND, passage_field="passage")
    found = read_output(about, {"passage": passage}, {"answer": apart})
    assert found == {"answer": "Zo\u00eb", "start": 9, "end": 12}
