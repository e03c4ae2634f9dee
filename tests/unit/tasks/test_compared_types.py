"""Values that equality does not compare: rankings and marks; and choices among candidates."""

import json
from typing import Any

import pytest

from annotation.verdict.outcome import TargetVerdict, judge_outputs
from annotation.verdict.texts import matches_pattern
from tasks.config.components import FIELD_TYPES, Component
from tasks.config.loading import check_config
from tasks.config.values import find_answer_errors
from tasks.config.verdicts import Contains, Pattern, Rank, SpansF1

OFFERS = {"offers": ["by bus", "on foot", "by boat"]}
RANKING = {"type": "candidates", "reference": "offers", "rank": True}
SPANS = {"type": "spans", "reference": "passage", "tags": ["place"]}
OFFER = {"name": "offers", "type": "candidates"}
PASSAGE = {"name": "passage", "type": "text"}
TEXT = {"name": "text", "type": "text"}
KIND = {"name": "kind", "type": "multiclass", "labels": ["a", "b"]}
RANKED = [{"name": "it", **RANKING}, KIND]
TARN = {"text": "Tarn", "start": 0, "end": 4, "tag": "place"}


def made(**keys: Any) -> Component:
    return Component.model_validate({"name": "it", **keys}, strict=False)


def text_of(**changes: Any) -> str:
    """A task in which people rank offers; `changes` are parts of the configuration."""
    return json.dumps(
        {
            "version": 1,
            "name": "Walk",
            "goal": {"text": "Rank"},
            "context": [OFFER, PASSAGE],
            "input": [{"name": "it", **RANKING}, TEXT],
            "output": ["it"],
            "verdict": {"type": "rank", "field": "it"},
            "metrics": {"main": "pair_accuracy"},
            **changes,
        },
        indent=1,
    )


@pytest.mark.parametrize(
    ("field", "rule", "metric"),
    [
        ({}, "rank", "pair_accuracy"),
        (SPANS, "spans_f1", "spans_overlap_f1"),
    ],
)
def test_such_a_task_works(field: dict[str, Any], rule: str, metric: str) -> None:
    target = {"name": "it", **(field or RANKING)}
    config, problems = check_config(
        text_of(input=[target], verdict={"type": rule, "field": "it"}, metrics={"main": metric})
    )
    assert config, problems
    assert config.get_component("it").kind.get_verdict_rule(config.get_component("it")) == rule


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"verdict": {"type": "rank", "field": "text"}}, "verdict.field"),
        ({"verdict": {"type": "spans_f1", "field": "it"}}, "verdict.type"),
        ({"verdict": {"type": "exact_match", "fields": ["it"]}}, "verdict.fields[0]"),
        ({"metrics": {"main": "accuracy"}}, "metrics.main"),
        ({"metrics": {"main": "pair_accuracy", "also": ["spans_f1"]}}, "metrics.also[0]"),
        ({"context": [OFFER | {"required": False}, PASSAGE]}, "input[0].reference"),
        ({"context": [OFFER | {"rank": True}, PASSAGE]}, "context[0].rank"),
        ({"context": [OFFER | {"reference": "passage"}, PASSAGE]}, "context[0].reference"),
        ({"input": [{"name": "it", "type": "candidates", "rank": True}, TEXT]}, "input[0]"),
        ({"input": [*RANKED, {"name": "sure", "type": "prob", "reference": "kind"}]}, "input[2]"),
        (
            {"input": [*RANKED, {"name": "marks", **SPANS, "reference": "offers"}]},
            "input[2].reference",
        ),
        (
            {
                "input": [{"name": "it", **SPANS}, TEXT],
                "output": ["text"],
                "verdict": {"type": "spans_f1", "field": "text"},
            },
            "verdict.type",
        ),
    ],
)
def test_what_cannot_work_is_refused(changes: dict[str, Any], path: str) -> None:
    config, problems = check_config(text_of(**changes))
    assert config is None
    assert path in [one.path for one in problems if one.severity == "error"]


ANSWER = {"name": "answer", "type": "text"}
WRITTEN = {
    "input": [TEXT],
    "output": [ANSWER],
    "metrics": {"main": "squad_f1"},
    "validation": {"mode": "verdict"},
}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"verdict": {"type": "pattern", "field": "answer", "pattern": "(?i)paris"}}, ""),
        ({"verdict": {"type": "pattern", "field": "text", "pattern": "a"}}, "verdict.field"),
        ({"verdict": {"type": "pattern", "field": "answer", "pattern": "(a"}}, "verdict.pattern"),
        ({"verdict": {"type": "pattern", "field": "answer", "pattern": ""}}, "verdict.pattern"),
        ({"verdict": {"type": "contains", "field": "answer"}}, "verdict.field"),
        ({"verdict": {"type": "contains", "field": "answer"}, "input": [TEXT, ANSWER]}, ""),
        (
            {
                "verdict": {"type": "pattern", "field": "it", "pattern": "a"},
                "input": [{"name": "it", **RANKING}],
                "output": ["it"],
                "metrics": {"main": "pair_accuracy"},
            },
            "verdict.field",
        ),
    ],
)
def test_rules_of_texts_are_checked(changes: dict[str, Any], path: str) -> None:
    config, problems = check_config(text_of(**WRITTEN | changes))
    assert (config is not None) == (not path), problems
    assert not path or path in [one.path for one in problems if one.severity == "error"]


SLOW = r"(a|aa)+$"


@pytest.mark.parametrize(
    ("rule", "said", "status"),
    [
        (Contains(type="contains", field="it"), "It was  PARIS!", "not_fooled"),
        (Contains(type="contains", field="it"), "Parisians", "fooled"),
        (Pattern(type="pattern", field="it", pattern=r"\d{4}"), "in 1889", "not_fooled"),
        (Pattern(type="pattern", field="it", pattern=r"\d{4}"), "never", "fooled"),
        (Pattern(type="pattern", field="it", pattern="key", forbidden=True), "a key", "fooled"),
        (Pattern(type="pattern", field="it", pattern="key", forbidden=True), "no", "not_fooled"),
        (Pattern(type="pattern", field="it", pattern=SLOW), "a" * 60 + "b", "undecided"),
    ],
)
def test_written_answers_are_judged_by_a_rule(rule: Any, said: str, status: str) -> None:
    assert judge_outputs({"it": "Paris"}, [{"it": said}], rule, "all").status == status


def test_a_pattern_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="missing"):
        matches_pattern("text", "(a")


@pytest.mark.parametrize(
    ("said", "status", "score"),
    [
        (["by bus", "on foot", "by boat"], "not_fooled", 1.0),
        (["on foot", "by bus", "by boat"], "fooled", 2 / 3),
    ],
)
def test_an_order_is_compared_by_its_pairs(said: list[str], status: str, score: float) -> None:
    rule = Rank(type="rank", field="it")
    found = judge_outputs({"it": OFFERS["offers"]}, [{"it": said}], rule, "all")
    assert found.status == status
    assert found.target_verdicts == (TargetVerdict(status == "fooled", pytest.approx(score)),)


@pytest.mark.parametrize(
    ("overlap", "start", "status"),
    [(False, 0, "not_fooled"), (False, 1, "fooled"), (True, 1, "not_fooled"), (True, 4, "fooled")],
)
def test_marks_are_compared_by_their_bounds(overlap: bool, start: int, status: str) -> None:
    rule = SpansF1(type="spans_f1", field="it", overlap=overlap)
    said = {**TARN, "start": start, "end": start + 4}
    assert judge_outputs({"it": [TARN]}, [{"it": [said]}], rule, "all").status == status


@pytest.mark.parametrize(
    ("keys", "typed", "stored", "shown"),
    [
        (RANKING, {"by bus": "2", "on foot": "1", "by boat": "3"}, ["on foot", "by bus", "by boat"],
         "1. on foot\n2. by bus\n3. by boat"),
        (RANKING, ["on foot", "by bus", "by boat"], ["on foot", "by bus", "by boat"],
         "1. on foot\n2. by bus\n3. by boat"),
        ({"type": "candidates", "reference": "offers"}, "on foot", "on foot", "on foot"),
    ],
)  # fmt: skip
def test_what_is_chosen(keys: dict[str, Any], typed: Any, stored: Any, shown: str) -> None:
    component = made(**keys)
    assert component.kind.parse_typed_value(component, typed, OFFERS) == stored
    assert component.kind.check(component, stored, OFFERS) == []
    assert component.kind.display(component, stored) == shown
    assert component.kind.get_verdict_rule(component) == ("rank" if component.rank else "")


@pytest.mark.parametrize(
    ("keys", "typed", "named"),
    [
        (RANKING, {"by bus": "1", "on foot": "1", "by boat": "3"}, "a place of its own"),
        (RANKING, ["by bus", "on foot"], "each of the 3"),
        (RANKING, ["by bus", "by bus", "on foot"], "twice"),
        (RANKING, "by bus", "list of texts"),
        ({"type": "candidates", "reference": "offers"}, "by air", "unchanged"),
        ({"type": "candidates", "reference": "offers"}, 3, "one of the candidates"),
        ({"type": "candidates"}, ["alone"], "at least two"),
        ({"type": "candidates"}, ["one", " two"], "spaces before"),
        ({"type": "candidates"}, ["one", "two\r\n2"], "control character"),
    ],
)
def test_what_cannot_be_chosen(keys: dict[str, Any], typed: Any, named: str) -> None:
    component = made(**keys)
    stored = component.kind.parse_typed_value(component, typed, OFFERS)
    (message,) = component.kind.check(component, stored, OFFERS)
    assert named in message


def test_answers_of_models_are_checked_as_far_as_the_context_is_known() -> None:
    ranking = made(**RANKING)
    assert find_answer_errors(ranking, ["by bus", "by air"], None) == []
    assert find_answer_errors(ranking, ["by bus", "by bus"], None)
    assert find_answer_errors(ranking, ["by bus", "by air"], OFFERS)
    assert find_answer_errors(made(**SPANS), [TARN], None) == []
    for odd in ({"start": "0"}, {"end": True}, {"end": 0}, {"start": -1}):
        assert find_answer_errors(made(**SPANS), [{**TARN, **odd}], None)
    assert find_answer_errors(made(type="text"), "anything", None) == []
    assert FIELD_TYPES["chat"].is_list(made(type="chat"))
    for component in (ranking, made(**RANKING | {"rank": False}), made(**SPANS)):
        assert component.kind.build_form_input(component)
        assert component.kind.is_list(component) == (component.rank or component.type == "spans")
    assert FIELD_TYPES["spans"].check_shape(made(**SPANS), [{**TARN, "tag": "day"}])
    assert FIELD_TYPES["spans"].check_shape(made(**SPANS), "Tarn")
