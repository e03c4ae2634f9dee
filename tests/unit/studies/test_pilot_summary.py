"""What a pilot tells of its study: means, planned people and the expected cost."""

from math import ceil, exp, log
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.campaigns.rules.pay import Pay
from dynabench.studies.rules.pilot_summary import (
    compute_outcome_mean,
    compute_people_cost,
    count_planned_people,
    extrapolate_cost,
)
from dynabench.studies.rules.plan import read_plan
from dynabench.studies.rules.records import MeasuredValue, PersonRecord

FOLDER = Path(__file__).parents[3] / "docs/studies"


def load(name):
    return read_plan((FOLDER / f"{name}.yaml").read_text())


def make_record(*values):
    measured = [MeasuredValue(outcome, "", value) for outcome, value in values]
    return PersonRecord(1, "alone", "", 0.5, True, True, values=measured)


def test_times_have_a_geometric_mean_and_other_values_a_plain_one():
    plan = load("helped-writers")
    records = [
        make_record(("writing_time", log(60)), ("catches", 1.0)),
        make_record(("writing_time", log(240)), ("catches", 0.0), ("catches", 0.0)),
    ]
    mean = compute_outcome_mean(plan.get_outcome("writing_time"), records)
    assert mean == pytest.approx(exp((log(60) + log(240)) / 2)) == pytest.approx(120)
    assert compute_outcome_mean(plan.get_outcome("catches"), records) == pytest.approx(1 / 3)
    assert compute_outcome_mean(plan.get_outcome("valid_examples"), records) is None


def test_planned_people_follow_the_ratios():
    plan = load("pay-by-novelty")
    assert [count_planned_people(plan, arm) for arm in plan.arm_names] == [58, 116]
    # Within people, everybody is in each arm.
    plan = load("steps-of-help")
    assert [count_planned_people(plan, arm) for arm in plan.arm_names] == [74, 74, 74]


@given(st.integers(1, 20), st.integers(0, 40), st.integers(0, 40), st.integers(1, 500))
def test_the_cost_of_all_people_is_that_of_the_pilot_times_their_number(
    submitted, accepted, catches, planned
):
    pay = Pay(task=100, accepted=7, bonus=40, fee_percent=25, tax_percent=20)
    cost = compute_people_cost(pay, submitted, accepted, catches)
    # By hand: each amount with a quarter for the panel and a fifth of both for the tax.
    assert cost == ceil((100 * submitted + 7 * accepted + 40 * catches) * 3 / 2)
    assert extrapolate_cost(cost, submitted, submitted) == cost
    assert extrapolate_cost(cost, submitted, planned) == round(cost * planned / submitted)
    assert extrapolate_cost(cost, 0, planned) is None
