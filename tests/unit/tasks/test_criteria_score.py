"""The score of an answer by its criteria, and what a list of criteria may be."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.components import Component
from tasks.config.criteria import (
    JUDGEMENTS,
    Criterion,
    ScoreRange,
    compute_score,
    judge_score,
    parse_judgements,
    read_criteria,
)
from tasks.config.field_types.criteria import Criteria, format_criteria
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError
from tests.support.criteria import CONFIG, CRITERIA, FIELD, build_text

POINTS = st.integers(-10, 10).filter(bool)
RULES = ("share", "all")


@st.composite
def judged(draw, judgements=JUDGEMENTS, most=6):
    """Criteria of which at least one has positive points, with a judgement of each."""
    points = draw(st.lists(POINTS, max_size=most - 1)) + [draw(st.integers(1, 10))]
    criteria = [Criterion(f"c{number}", one) for number, one in enumerate(points)]
    chosen = st.lists(st.sampled_from([*judgements]), min_size=len(points), max_size=len(points))
    return criteria, draw(chosen)


@given(judged(("met", "not_met")))
def test_a_share_is_the_clipped_sum_of_points_over_the_positive_ones(case):
    criteria, judgements = case
    points = sum(c.points for c, j in zip(criteria, judgements, strict=True) if j == "met")
    positive = sum(max(c.points, 0) for c in criteria)
    expected = min(max(Fraction(points, positive), 0), 1)
    score = compute_score(criteria, judgements, "share")
    assert score.value == score.low == score.high == float(expected)


@given(judged(("met", "not_met")))
def test_all_is_whole_or_nothing(case):
    criteria, judgements = case
    is_right = all(
        (j == "met") == (c.points > 0) for c, j in zip(criteria, judgements, strict=True)
    )
    assert compute_score(criteria, judgements, "all").value == float(is_right)
    if is_right:
        assert compute_score(criteria, judgements, "share").value == 1


@pytest.mark.parametrize("rule", RULES)
@given(case=judged())
def test_a_range_is_of_what_unclear_judgements_may_be(rule, case):
    criteria, judgements = case
    ways = product(*[[j] if j != "cannot_tell" else ["met", "not_met"] for j in judgements])
    scores = [compute_score(criteria, way, rule).value for way in ways]
    assert compute_score(criteria, judgements, rule) == (min(scores), max(scores))


@pytest.mark.parametrize("rule", RULES)
@given(case=judged(), threshold=st.floats(0.01, 1))
def test_a_verdict_stands_whatever_unclear_judgements_turn_out_to_be(rule, case, threshold):
    criteria, judgements = case
    verdict = judge_score(compute_score(criteria, judgements, rule), threshold)
    for clear in ("met", "not_met"):
        sure = [clear if j == "cannot_tell" else j for j in judgements]
        later = judge_score(compute_score(criteria, sure, rule), threshold)
        assert later in ("correct", "incorrect")
        assert verdict in (later, "cannot_tell")


@given(judged(("met", "not_met")), st.data())
def test_a_criterion_that_is_met_moves_the_score_towards_its_points(case, data):
    criteria, judgements = case
    place = data.draw(st.integers(0, len(criteria) - 1))
    met, unmet = [*judgements], [*judgements]
    met[place], unmet[place] = "met", "not_met"
    for rule in RULES:
        high, low = (compute_score(criteria, each, rule).value for each in (met, unmet))
        assert high >= low if criteria[place].points > 0 else high <= low


@given(judged(), st.randoms(use_true_random=False))
def test_the_order_of_criteria_does_not_matter(case, chance):
    pairs = list(zip(*case, strict=True))
    chance.shuffle(pairs)
    criteria, judgements = zip(*pairs, strict=True)
    for rule in RULES:
        assert compute_score(criteria, judgements, rule) == compute_score(*case, rule)


def test_three_of_five_points_are_enough_for_a_threshold_of_six_tenths():
    criteria = read_criteria(CRITERIA)
    score = compute_score(criteria, ("met", "not_met", "not_met"), "share")
    assert judge_score(score, 0.6) == "correct"
    assert score == ScoreRange(0.6, 0.6)


def test_what_has_no_score_is_refused():
    with pytest.raises(ValueError, match="positive"):
        compute_score([Criterion("a", -1)], ["met"], "share")
    with pytest.raises(ValueError, match="zip"):
        compute_score([Criterion("a", 1)], [], "share")


def test_judgements_are_complete_or_none():
    criteria = read_criteria(CRITERIA)
    assert parse_judgements(["met", "not_met", "cannot_tell"], criteria) is not None
    for wrong in (None, "met", ["met"], ["met", "met", "maybe"], ["met", "met", None], [[]] * 3):
        assert parse_judgements(wrong, criteria) is None


# The field type

KIND = Criteria()
PART = Component(**FIELD)
PLAIN = Component(**(FIELD | {"points": False}))


@given(
    st.lists(
        st.tuples(st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1), POINTS),
        min_size=1,
        max_size=10,
        unique_by=lambda pair: pair[0].casefold(),
    )
)
def test_lines_of_a_form_come_back_as_they_were_stored(pairs):
    stored = [{"text": text, "points": points} for text, points in pairs]
    assert KIND.parse_typed_value(PART, format_criteria(stored), {}) == stored
    assert KIND.normalise(PART, stored) == stored


def test_lines_are_read_with_and_without_points():
    typed = "Names a dose = 3\r\n\n  Is   kind \nx = y = -2\nAdds 1 = 1 = two"
    assert KIND.parse_typed_value(PART, typed.replace("\r\n", "\n"), {}) == [
        {"text": "Names a dose", "points": 3},
        {"text": "Is kind", "points": 1},
        {"text": "x = y", "points": -2},
        {"text": "Adds 1 = 1 = two", "points": 1},
    ]
    assert KIND.parse_typed_value(PLAIN, "Names a dose = 3", {}) == [
        {"text": "Names a dose = 3", "points": 1}
    ]
    assert KIND.normalise(PART, ["Is kind"]) == [{"text": "Is kind", "points": 1}]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ([f"c{number}" for number in range(10_000)], "10000"),
        (["Names a dose", "names  a DOSE"], "1 and 2"),
        ([], "at least one"),
        ([" "], "number 1"),
        (["x" * 501], "501"),
        (["bell \x07"], "control character"),
        ([{"text": "a", "points": 0}], "points"),
        ([{"text": "a", "points": 11}], "points"),
        ([{"text": "a", "points": True}], "points"),
        ([{"text": "a", "points": 1.5}], "points"),
        ([{"text": "a", "points": -1}], "above 0"),
        ([{"text": "a", "points": 1, "more": 1}], "nothing else"),
        ([["a"]], "text and points"),
        ([{"text": 7}], "number 1"),
        ("Names a dose", "list"),
        ({"text": "a"}, "list"),
    ],
)
def test_what_is_no_list_of_criteria_is_refused_by_name(value, named):
    (message,) = KIND.check(PART, KIND.normalise(PART, value), {})
    assert named in message
    assert "Your criteria" in message


def test_without_points_each_has_one():
    value = [{"text": "a", "points": 2}]
    assert KIND.check(PLAIN, value, {})
    assert not KIND.check(PART, value, {})


def test_markup_is_a_text_like_any_other():
    value = KIND.parse_typed_value(PART, "<script>alert(1)</script>", {})
    assert not KIND.check(PART, value, {})


# The configuration


def problems_of(**changes):
    with pytest.raises(ConfigError) as caught:
        load_config(build_text(**changes))
    return {problem.path for problem in caught.value.problems}


def with_fields(*fields):
    return [CONFIG["input"][0], *fields]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"verdict": {"type": "criteria", "field": "check"}}, "verdict.field"),
        ({"verdict": {"type": "criteria", "field": "question"}}, "verdict.field"),
        ({"verdict": CONFIG["verdict"] | {"score": "all"}}, "verdict.threshold"),
        ({"verdict": CONFIG["verdict"] | {"threshold": 0}}, "verdict.threshold"),
        ({"verdict": CONFIG["verdict"] | {"score": "most"}}, "verdict.score"),
        ({"input": with_fields(FIELD | {"required": False})}, "input[1]"),
        ({"input": with_fields(FIELD, FIELD | {"name": "more"})}, "input[2]"),
        ({"input": with_fields(FIELD | {"max_criteria": 51})}, "input[1].max_criteria"),
        ({"input": with_fields(FIELD | {"max_length": 501})}, "input[1].max_length"),
        ({"validation": {"votes": {"needed": 2}}}, "validation"),
        (
            {"validation": {"corrections": True, "answers": {"correct": "a", "incorrect": "b"}}},
            "validation.answers",
        ),
        ({"validation": {"corrections": True, "asks": "attempt"}}, "validation.asks"),
        (
            {"output": [{"name": "reply", "type": "multiclass", "labels": ["a", "b"]}]},
            "verdict.type",
        ),
    ],
)
def test_a_configuration_that_criteria_cannot_decide_is_refused(changes, path):
    assert path in problems_of(**changes)


def test_a_judge_model_is_no_main_metric_and_one_finding_says_so():
    assert problems_of(metrics={"main": "llm_judge", "judge": "careful"}) == {"metrics.main"}
    metrics = {"main": "rouge_l", "also": ["llm_judge"], "judge": "careful"}
    weights = {"weights": {"llm_judge": 10, "rouge_l": 1}}
    load_config(build_text(metrics=metrics, leaderboard=weights))


def test_a_right_answer_of_the_author_stands_in_for_corrections():
    reply = {"name": "reply", "type": "long_text", "label": "Your answer"}
    text = build_text(input=with_fields(FIELD, reply), output=["reply"], validation={})
    assert load_config(text).verdict.type == "criteria"
