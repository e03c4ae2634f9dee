"""Rules of an owner's own: how they are read, and when somebody breaks one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.campaigns.rules.own_rules import (
    FORM_MESSAGE,
    MEASURES,
    MeasuredValue,
    Rule,
    RuleError,
    find_broken_rules,
    read_rules,
)

SHARES = st.floats(0, 1)


@st.composite
def rules(draw):
    name = draw(st.sampled_from(list(MEASURES)))
    limit = draw(st.integers(0, 100)) / 100
    return Rule(name, limit, draw(st.integers(1, 50)), name == "agreement" and draw(st.booleans()))


@st.composite
def measured(draw):
    low, value, high = sorted(draw(st.tuples(SHARES, SHARES, SHARES)))
    return MeasuredValue(value, low, high, draw(st.integers(0, 60)))


def test_a_rule_is_a_line():
    told = read_rules("agreement  below chance + 0.2 after 20\n\n pasted above 0.8 after 10\r\n")
    assert told == (Rule("agreement", 0.2, 20, True), Rule("pasted", 0.8, 10))
    assert read_rules("\n".join(map(str, told))) == told
    assert read_rules(" \n") == ()


@given(st.lists(rules(), unique_by=lambda one: one.measure))
def test_rules_are_written_as_they_are_read(given_rules):
    assert read_rules("\n".join(map(str, given_rules))) == tuple(given_rules)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("gold below 0.7 after 8\nnonsense", [2]),
        ("honesty below 0.7 after 8", [1]),
        ("gold above 0.7 after 8", [1]),
        ("gold below 70 after 8", [1]),
        ("gold below chance + 0.2 after 8", [1]),
        ("gold below 0.7 after 8\n\ngold below 0.6 after 9\npasted below 3 after 1", [3, 4, 4]),
        ("judging-seconds below 3000000 after 8", [1]),
    ],
)
def test_wrong_lines_are_named(text, lines):
    with pytest.raises(RuleError) as error:
        read_rules(text)
    assert [one.line for one in error.value.problems] == lines
    assert all(one.message % one.words for one in error.value.problems)


def problems(text):
    try:
        read_rules(text)
    except RuleError as error:
        return error.problems
    return []


@given(st.text(max_size=60))
def test_any_text_is_rules_or_names_a_line(text):
    assert {one.message for one in problems(text)} <= {FORM_MESSAGE}


@given(rules(), measured(), st.integers(2, 10))
def test_only_what_is_surely_wrong_breaks_a_rule(rule, one, answers):
    """By the kinder end of the interval, never before enough answers, and a laxer rule less."""
    found = find_broken_rules([rule], {rule.measure: one}, answers)
    is_below = MEASURES[rule.measure].side == "below"
    for each in found:
        assert one.n >= rule.min_answers
        assert one.high < each.limit if is_below else one.low > each.limit
    assert find_broken_rules([rule], {}, answers) == ()
    kinder = MeasuredValue(one.value, one.low, 1.0, one.n) if is_below else one._replace(low=0.0)
    assert len(find_broken_rules([rule], {rule.measure: kinder}, answers)) <= len(found)
    laxer = rule.limit / 2 if is_below else rule.limit + 0.1
    lax = Rule(rule.measure, laxer, rule.min_answers + 1, rule.over_chance)
    assert len(find_broken_rules([lax], {rule.measure: one}, answers)) <= len(found)


def test_chance_is_one_of_the_answers():
    [rule] = read_rules("agreement below chance + 0.2 after 20")
    one = MeasuredValue(0.4, 0.3, 0.52, 20)
    assert find_broken_rules([rule], {"agreement": one}, 3)[0].limit == pytest.approx(0.2 + 1 / 3)
    assert not find_broken_rules([rule], {"agreement": one}, 4)
    assert not find_broken_rules([rule], {"agreement": one._replace(n=19)}, 3)
