"""Each step of a conversation is decided by the round's policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.judging import Steps
from tasks.config.judging_checks import list_step_labels
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError
from validation.consensus.consensus import Decision, Policy, Vote, count_votes_still_needed
from validation.consensus.steps import (
    Step,
    count_needed_for_steps,
    decide_steps,
    find_step_error,
    list_steps,
    read_step_labels,
)
from validation.rates.rates import Undefined
from validation.rates.step_counts import StepCounts, measure_steps

TALK = [{"role": role, "text": "a"} for role in ("system", "user", "assistant", "tool")]
STEPS = [Step("3", "assistant"), Step("4", "tool")]
OPEN = Decision("undecided")


def test_steps_are_turns_of_the_assistant_and_of_tools():
    assert list_steps(Steps(field="trace"), {"trace": TALK}) == STEPS
    only_tools = Steps(field="trace", roles=("tool",))
    assert list_steps(only_tools, {"trace": TALK}) == STEPS[1:]
    assert list_steps(None, {"trace": TALK}) == []
    assert list_steps(Steps(field="trace"), {}) == []


def test_each_step_is_decided_by_itself():
    votes = [{"3": "right", "4": "wrong"}, {"3": "right", "4": "right"}]
    decisions = decide_steps(votes, Policy("n-equal", needed=2))
    assert (decisions["3"].label, decisions["4"].state) == ("right", "undecided")
    # A model of whole examples says nothing about steps, so equal votes decide.
    assert decide_steps(votes, Policy("dawid-skene", needed=2))["3"].label == "right"


@pytest.mark.parametrize(
    ("decision", "needed"),
    [
        (OPEN, 1),
        (Decision("decided", Vote(label="right")), 1),
        (Decision("decided", Vote(verdict="flagged")), 0),
        (Decision("decided", Vote(label="right"), is_by_owner=True), 0),
    ],
)
def test_votes_are_asked_for_until_all_steps_are_decided(decision, needed):
    votes = [{"3": "right", "4": "wrong"}, {"3": "right", "4": "right"}]
    assert count_needed_for_steps(votes, decision, Policy(needed=2), STEPS) == needed


LABELS = st.sampled_from(["right", "wrong", "unclear"])
VOTES = st.lists(st.fixed_dictionaries({"3": LABELS, "4": LABELS}), max_size=9)
POLICIES = st.one_of(
    st.builds(Policy, st.just("n-equal"), st.integers(1, 4)),
    st.builds(Policy, st.sampled_from(["strict", "plurality"]), st.just(3), st.integers(3, 9)),
)


@given(VOTES, POLICIES)
def test_the_step_that_needs_most_votes_counts(votes, policy):
    needed = count_needed_for_steps(votes, OPEN, policy, STEPS)
    assert needed == max(
        count_votes_still_needed([Vote(label=labels[key]) for labels in votes], policy)
        for key in ("3", "4")
    )
    decisions = decide_steps(votes, policy)
    if votes and not needed:
        assert all(decision.state != "undecided" for decision in decisions.values())


def test_agreement_is_measured_over_steps():
    counts = StepCounts()
    nothing = measure_steps(counts)
    assert isinstance(nothing["step_krippendorff_alpha"], Undefined)
    assert isinstance(nothing["step_unanimous_share"], Undefined)
    counts.add_example([({"right": 2}, True), ({"right": 1, "wrong": 1}, False)])
    counts.add_example([({"wrong": 2}, True), ({"right": 1}, False)])
    measured = measure_steps(counts)
    names = ("steps_judged", "steps_decided", "step_votes")
    assert [measured[name] for name in names] == [4, 2, 7]
    # By hand: pairs on three steps; 2 of 3 agree. 3 right and 3 wrong of six votes.
    assert measured["step_unanimous_share"].value == pytest.approx(2 / 3)
    expected = 1 - (1 / 3) / (2 * 3 * 3 / (6 * 5))
    assert measured["step_krippendorff_alpha"] == pytest.approx(expected)
    both = StepCounts()
    both += counts
    both += counts
    assert both.votes == 14


STEP_CONFIG = """\
version: 1
name: Agent
goal: {text: Write}
context: [{name: trace, type: chat}, {name: other, type: text}]
input: [{name: label, type: multiclass, labels: [right, wrong]}]
output: [label]
verdict: {type: exact_match, fields: [label]}
metrics: {main: accuracy}
validation: {mode: label, steps: STEPS}
"""


def load(steps):
    return load_config(STEP_CONFIG.replace("STEPS", steps))


def test_labels_of_steps_are_their_own_or_those_of_the_answer():
    own = load("{field: trace, labels: [fine, {value: bad, display: Bad step}]}")
    assert [label.words for label in list_step_labels(own)] == ["fine", "Bad step"]
    same = load("{field: trace}")
    assert [label.value for label in list_step_labels(same)] == ["right", "wrong"]
    assert list_step_labels(load("null")) == ()


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        ("{field: other}", "validation.steps.field"),
        ("{field: talk}", "validation.steps.field"),
        (
            "{field: other}}\nmetadata: {validate: [{name: why, type: text}]",
            "validation.steps.field",
        ),
        ("{field: trace, roles: []}", "validation.steps.roles"),
        ("{field: trace, roles: [tool, tool]}", "validation.steps.roles"),
        ("{field: trace, roles: [user]}", "validation.steps.roles[0]"),
        ("{field: trace, labels: [fine]}", "validation.steps.labels"),
        ("{field: trace, labels: [fine, Fine]}", "validation.steps.labels[1]"),
        ("{labels: [fine, bad]}", "validation.steps.field"),
        ("{field: trace}}\nmetadata: {validate: [{name: steps, type: text}]", "validation.steps"),
    ],
)
def test_wrong_steps_are_named(steps, path):
    with pytest.raises(ConfigError) as error:
        load(steps)
    assert path in {problem.path for problem in error.value.problems}


LABELLED = load("{field: trace, labels: [fine, bad]}")
RIGHT, UNCLEAR = Vote(label="right"), Vote(verdict="cannot_tell")
COMPLETE = {"3": "fine", "4": "bad"}


@pytest.mark.parametrize(
    ("vote", "labels", "why"),
    [
        (RIGHT, COMPLETE, ""),
        (RIGHT, None, "Give a label"),
        (RIGHT, {"3": "fine"}, "4"),
        (RIGHT, {**COMPLETE, "5": "fine"}, "5"),
        (RIGHT, {**COMPLETE, "3": "superb"}, "3"),
        (UNCLEAR, None, ""),
        (UNCLEAR, COMPLETE, "Leave them out"),
    ],
)
def test_a_vote_answers_about_each_step_or_about_none(vote, labels, why):
    error = find_step_error(LABELLED, STEPS, vote, labels)
    assert bool(error) == bool(why)
    assert why in error


def test_answers_are_read_from_a_vote():
    assert read_step_labels({"steps": COMPLETE}) == COMPLETE
    assert read_step_labels({}) == read_step_labels({"steps": 7}) == {}
    assert not find_step_error(LABELLED, [], RIGHT, None)
