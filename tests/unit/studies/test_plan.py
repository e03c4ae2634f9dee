"""A study's plan: the examples of the docs, and what is wrong with other plans, with its line."""

from pathlib import Path

import pytest

from dynabench.studies.rules.plan import (
    compute_plan_hash,
    compute_shifts,
    find_effect_problem,
    read_plan,
)
from dynabench.studies.rules.starter import PLACEHOLDERS, write_starter_plan
from tasks.config.parsing import ConfigError

PLANS = sorted((Path(__file__).parents[3] / "docs/studies").glob("*.yaml"))
PLAN = """\
version: 1
study: helped
title: Help
question: Does help help?
arms:
  - {name: alone, differs: No help}
  - {name: helped, differs: Suggestions}
  - {name: more, differs: More suggestions}
design: between
outcomes:
  - name: catches
    measure: caught
    assume: {mean: 0.3}
hypotheses:
  - {arm: helped, compared_with: alone, outcome: catches, expected: higher}
size: {people: 90, each: 4, contexts: 30, effect: 0.4, power: 0.8}
"""


def find_problems(text):
    """The path and the line of each problem of a plan."""
    with pytest.raises(ConfigError) as caught:
        read_plan(text)
    return [(problem.path, problem.line) for problem in caught.value.problems]


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_the_plans_of_the_docs_are_valid(path):
    plan = read_plan(path.read_text())
    assert find_effect_problem(plan, plan.size.effect) == ""


def test_the_docs_have_the_design_with_four_arms():
    (plan,) = [plan for plan in map(read_plan, map(Path.read_text, PLANS)) if len(plan.arms) == 4]
    assert plan.size.people == 600
    assert plan.outcomes[0].measure == "correct"
    assert plan.outcomes[1].minus is not None


@pytest.mark.parametrize(
    ("old", "new", "path", "line"),
    [
        ("name: more,", "name: alone,", "arms[2].name", 8),
        ("measure: caught", "measure: caugt", "outcomes[0].measure", 12),
        ("measure: caught", "measure: cost", "outcomes[0].measure", 12),
        ("measure: caught", "measure: answer", "outcomes[0].question", 11),
        ("measure: caught", "measure: caught\n    minus: before", "outcomes[0].minus", 13),
        ("{mean: 0.3}", "{mean: 1}", "outcomes[0].assume.mean", 13),
        ("{mean: 0.3}", "{mean: 0.9}", "outcomes[0].assume.mean", 13),
        ("{mean: 0.3}", "{mean: 0.3, same_person: 0.9, same_context: 0.2}",
         "outcomes[0].assume", 13),
        ("caught\n    assume: {mean: 0.3}", "seconds\n    assume: {mean: 0}",
         "outcomes[0].assume.mean", 13),
        ("arm: helped,", "arm: help,", "hypotheses[0].arm", 15),
        ("compared_with: alone", "compared_with: helped", "hypotheses[0].compared_with", 15),
        ("outcome: catches", "outcome: catch", "hypotheses[0].outcome", 15),
        ("people: 90", "people: 50", "size.people", 16),
        ("people: 90", "people: ninety", "size.people", 16),
        ("design: between", "design: within\nblocks: [skill]", "blocks", 10),
        ("No help}", "No help, ratio: 2}\n", "arms[0].ratio", 6),
        ("version: 1", "version: 1\nextra: 2", "extra", 2),
    ],
)  # fmt: skip
def test_a_problem_is_named_with_its_line(old, new, path, line):
    text = PLAN.replace(old, new)
    if path == "arms[0].ratio":
        text = text.replace("between", "within")
    assert find_problems(text) == [(path, line)]


def test_a_comparison_is_there_once_and_directions_agree():
    first = "  - {arm: helped, compared_with: alone, outcome: catches, expected: higher}\n"
    arms = "arm: helped, compared_with: alone"
    repeated = first.replace(arms, "arm: alone, compared_with: helped")
    assert ("hypotheses[1]", 16) in find_problems(PLAN.replace(first, first + repeated))
    # More is above alone by two steps, so it can't be below helped.
    steps = first.replace(arms, "arm: more, compared_with: helped")
    against = first.replace("arm: helped", "arm: more").replace("higher", "lower")
    assert find_problems(PLAN.replace(first, first + steps + against)) == [
        ("hypotheses[2].expected", 17)
    ]


def test_an_effect_is_a_step_from_arm_to_arm():
    text = PLAN.replace("size:", "  - {arm: more, compared_with: helped, outcome: catches, "
                                 "expected: higher}\nsize:")  # fmt: skip
    plan = read_plan(text.replace("effect: 0.4", "effect: 0.3"))
    assert compute_shifts(plan.hypotheses, "catches") == {"alone": 0, "helped": 1, "more": 2}
    assert plan.compute_unit_difference(plan.hypotheses[1]) == pytest.approx((0.3 * 0.7) ** 0.5)
    reversed_plan = read_plan(text.replace("expected: higher}\nsize", "expected: lower}\nsize"))
    assert compute_shifts(reversed_plan.hypotheses, "catches")["more"] == 0
    assert compute_shifts(plan.hypotheses, "other") == {}


def test_the_compared_arm_may_follow_from_the_other():
    text = PLAN.replace("size:", "  - {arm: helped, compared_with: more, outcome: catches, "
                                 "expected: lower}\nsize:")  # fmt: skip
    assert compute_shifts(read_plan(text.replace("0.4", "0.3")).hypotheses, "catches")["more"] == 2


def test_an_effect_must_leave_shares_between_0_and_1():
    plan = read_plan(PLAN)
    assert find_effect_problem(plan, 0) == ""
    assert find_effect_problem(plan, 1.9)
    assert find_effect_problem(plan, -0.1)


def test_the_hash_does_not_depend_on_line_ends():
    assert compute_plan_hash(PLAN) == compute_plan_hash(PLAN.replace("\n", "\r\n"))
    assert compute_plan_hash(PLAN) != compute_plan_hash(PLAN.replace("90", "91"))


@pytest.mark.parametrize("campaigns", [[], ["one"], ["one", "two", "three"]])
def test_the_plan_of_a_new_study_is_valid(campaigns):
    plan = read_plan(write_starter_plan("nli-study", campaigns))
    names = [arm.campaign for arm in plan.arms]
    assert names == (campaigns + list(PLACEHOLDERS)[len(campaigns) :])[:2]
