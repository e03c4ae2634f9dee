"""What people are owed and what a place can cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.campaigns.rules.cost import Parts, extrapolate_to_end, price_time, sum_rounded
from dynabench.campaigns.rules.pay import (
    Pay,
    calculate_median_hourly_pay,
    count_affordable_people,
    format_units,
    prorate,
)
from dynabench.campaigns.ways import kinds  # noqa: F401 - importing them registers them
from dynabench.campaigns.ways.registry import WAYS


def test_a_place_reserves_all_that_can_be_earned():
    pay = Pay(task=100, accepted=10, bonus=40, fee_percent=30, tax_percent=20)
    assert pay.with_costs(1) == 2  # 1.56, rounded up
    assert pay.most(2) == 312
    assert pay.reserved(2, 2, 0) == 624
    assert pay.reserved(2, 2, 1) == 626  # owed to somebody who is out again
    assert Pay(task=100, test=300).most(2) == 300


@pytest.mark.parametrize(("budget", "people"), [(None, None), (373, 1), (374, 2), (10, 0)])
def test_how_many_people_a_budget_pays(budget, people):
    pay = Pay(task=100, bonus=50, fee_percent=10)
    assert pay.people(budget, examples=1, owed_to_others=40) == people


@pytest.mark.parametrize(
    ("done", "asked", "amount"), [(1, 2, 75), (1, 4, 38), (0, 4, 0), (5, 4, 150), (0, 0, 150)]
)
def test_a_part_of_the_pay_is_rounded_up(done, asked, amount):
    assert prorate(150, done, asked) == amount


def test_an_hour_is_that_of_the_median_person():
    assert (
        calculate_median_hourly_pay([(300, 1800.0), (300, 3600.0), (300, 900.0), (1, 0.0)]) == 600
    )
    assert calculate_median_hourly_pay([]) is None


@pytest.mark.parametrize(
    ("budget", "spent", "people", "left"),
    [(None, 0, 0, None), (1000, 0, 0, 10), (1000, 400, 2, 3), (1000, 2000, 2, 0)],
)
def test_a_forecast_until_the_budgets_end(budget, spent, people, left):
    assert count_affordable_people(Pay(task=100), budget, spent, people) == left
    assert count_affordable_people(Pay(), 1000, 0, 0) is None


def test_amounts_have_their_currencys_decimals():
    assert [format_units(425, one) for one in ("EUR", "JPY", "KWD")] == ["4.25", "425", "0.425"]


def test_panels_name_people_as_they_do():
    assert WAYS["link"].panel.read({"pid": "a1"}).id == "a1"
    assert WAYS["link"].panel.read({"pid": "=1+1"}) is None
    assert WAYS["prolific"].panel.read({"PROLIFIC_PID": "5" * 24}) is None
    assert (
        WAYS["link"].panel.way_back("https://p.test/?c={code}", "A&B") == "https://p.test/?c=A%26B"
    )
    assert WAYS["link"].panel.way_back("", "A") == WAYS["mturk"].panel.way_back("", "") == ""


PROLIFIC = {"PROLIFIC_PID": "5" * 24, "STUDY_ID": "6" * 24, "SESSION_ID": "7" * 24}
MTURK = {"workerId": "AWORKER1", "assignmentId": "3ASSIGN", "hitId": "3HIT0"}
TYPED = ("{{id}}", "${id}", "[ID]", "%id%", "[%RID%]", "<pid>", "#id#", "{{%PROLIFIC_PID%}}")
REAL = [
    ("prolific", PROLIFIC),
    ("prolific", {}),
    ("mturk", MTURK),
    ("link", {"pid": "panel-person-1", "SESSION_ID": "ab12"}),
    ("link", {"pid": "a@b.example"}),
]
PREVIEWS = [
    ("mturk", {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "3HIT0"}),
    ("mturk", MTURK | {"workerId": "${workerId}"}),
    ("prolific", PROLIFIC | {"SESSION_ID": "0a1b2c3d4e5f"}),
    ("prolific", PROLIFIC | {"SESSION_ID": "{{%SESSION_ID%}}"}),
    ("prolific", {name: f"{{{{%{name}%}}}}" for name in PROLIFIC}),
    *(("link", {"pid": text}) for text in TYPED),
]


@pytest.mark.parametrize(("way", "query"), REAL)
def test_who_takes_part_is_in_no_preview(way, query):
    assert not WAYS[way].panel.is_preview(query)


@pytest.mark.parametrize(("way", "query"), PREVIEWS)
def test_who_only_looks_takes_no_part(way, query):
    assert WAYS[way].panel.is_preview(query)
    assert WAYS[way].panel.read(query) is None


@given(st.lists(st.from_regex(r"[0-9a-f]{24}", fullmatch=True), min_size=3, max_size=3))
def test_no_real_id_is_a_preview(ids):
    prolific = dict(zip(PROLIFIC, ids, strict=True))
    mturk = dict(zip(MTURK, map(str.upper, ids), strict=True))
    for way, query in (("prolific", prolific), ("mturk", mturk), ("link", {"pid": ids[0]})):
        assert WAYS[way].panel.read(query)
        assert not WAYS[way].panel.is_preview(query)


def test_unknown_is_not_nothing():
    parts = Parts(
        300, judges=sum_rounded([40.4, 9.8]), model_calls=sum_rounded([1.0, price_time(9, None)])
    )
    assert (parts.judges, parts.model_calls, parts.evaluation) == (50, None, None)
    assert (parts.known, parts.unknown) == (350, ["model_calls", "evaluation"])
    assert (sum_rounded([]), price_time(0, None), price_time(90, 200)) == (0, 0.0, 5.0)


@pytest.mark.parametrize(
    ("submitted", "left", "comes_to"), [(0, None, None), (3, None, 1000), (3, 2, 500), (12, 9, 300)]
)
def test_the_end_is_that_of_the_places_or_the_budget(submitted, left, comes_to):
    assert extrapolate_to_end(300, submitted, 10, left) == comes_to
