"""What work earns, what people are owed and what a place can cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.money import format_units
from dynabench.campaigns.rules.cost import CostParts, extrapolate_to_end, price_time, sum_rounded
from dynabench.campaigns.rules.pay import (
    AcceptedExample,
    Credit,
    DoneWork,
    Pay,
    calculate_median_hourly_pay,
    compute_earned,
    compute_owed,
    count_affordable_people,
    list_due_credits,
    prorate,
)
from dynabench.campaigns.ways import kinds  # noqa: F401 - importing them registers them
from dynabench.campaigns.ways.registry import WAYS

HALF_DONE = DoneWork("both", each=2, written=2, judged=0)


def test_more_of_one_kind_of_work_does_not_replace_the_other():
    done_work = DoneWork("both", each=2, written=9, judged=1)
    assert (done_work.amount, done_work.required_amount) == (3, 4)
    assert done_work.unfinished_kinds == ["judge"]
    assert (done_work.has_begun, done_work.is_enough) == (True, False)


@pytest.mark.parametrize(
    ("kind", "amounts"),
    [("write", [1]), ("judge", [2]), ("both", [1, 2]), ("arena", [3])],
)
def test_a_campaign_counts_only_the_work_that_it_requires(kind, amounts):
    done_work = DoneWork(kind, each=1, written=1, judged=2, compared=3)
    assert [amount for _kind, amount in done_work.amounts] == amounts
    assert done_work.is_enough


@pytest.mark.parametrize(
    ("done_work", "are_rounds_over", "amount"),
    [
        (DoneWork("judge", each=2, judged=2), False, 100),
        (HALF_DONE, False, 50),
        (HALF_DONE, True, 100),
        (DoneWork("judge", each=2), False, 20),
        (DoneWork("judge", each=2), True, 20),
    ],
)
def test_submitted_work_earns_its_part(done_work, are_rounds_over, amount):
    pay = Pay(task=100, test=20)
    assert pay.compute_submission_pay(done_work, are_rounds_over=are_rounds_over) == amount


def test_an_approval_pays_the_full_amount():
    assert Pay(task=150).compute_approval_supplement(75) == 75
    assert Pay(task=150).compute_approval_supplement(None) == 0


def credit(*examples, max_examples=2, credited_keys=(), paid_counts=None):
    return list(
        list_due_credits(
            Pay(accepted=10, bonus=50),
            examples,
            max_examples=max_examples,
            credited_keys=credited_keys,
            paid_counts=paid_counts or {},
        )
    )


def test_an_accepted_example_is_credited_once():
    examples = [AcceptedExample(1, "a", None), AcceptedExample(1, "b", 0.5)]
    credits_of_a = [Credit(1, "accepted", "a", 10)]
    credits_of_b = [Credit(1, "accepted", "b", 10), Credit(1, "bonus", "b", 25)]
    assert credit(*examples) == credits_of_a + credits_of_b
    assert credit(*examples, credited_keys={(1, "accepted", "a")}) == credits_of_b


def test_examples_are_paid_up_to_the_maximum():
    examples = [AcceptedExample(place, cause, 1.0) for place in (1, 2) for cause in "abc"]
    due_credits = credit(*examples, paid_counts={(1, "accepted"): 1})
    assert [(row.place, row.cause) for row in due_credits if row.kind == "accepted"] == [
        (1, "a"), (2, "a"), (2, "b")
    ]  # fmt: skip
    assert [(row.place, row.cause) for row in due_credits if row.kind == "bonus"] == [
        (1, "a"), (1, "b"), (2, "a"), (2, "b")
    ]  # fmt: skip


def test_a_bonus_of_0_is_stored_and_does_not_count():
    examples = [
        AcceptedExample(1, cause, share) for cause, share in zip("abc", (0.0, 1, 1), strict=True)
    ]
    bonuses = [row.amount for row in credit(*examples) if row.kind == "bonus"]
    assert bonuses == [0, 50, 50]


def test_nothing_is_credited_where_nothing_is_paid():
    assert Pay().compute_example_pay(None) == {}
    assert credit(AcceptedExample(1, "a", 1.0), max_examples=0) == []


def test_what_was_paid_is_no_longer_owed():
    sums = {"earned": 100, "accepted": 30, "bonus": 25, "paid": 120}
    assert (compute_earned(sums), compute_owed(sums)) == (155, 35)
    assert compute_owed({"paid": 120}) == -120


def test_a_place_reserves_all_that_can_be_earned():
    pay = Pay(task=100, accepted=10, bonus=40, fee_percent=30, tax_percent=20)
    assert pay.add_costs(1) == 2  # 1.56, rounded up
    assert pay.compute_max_cost(2) == 312
    assert pay.compute_reserved_cost(2, 2, 0) == 624
    assert pay.compute_reserved_cost(2, 2, 1) == 626  # owed to somebody who is out again
    assert Pay(task=100, test=300).compute_max_cost(2) == 300


@pytest.mark.parametrize(("budget", "people"), [(None, None), (373, 1), (374, 2), (10, 0)])
def test_how_many_people_a_budget_pays(budget, people):
    pay = Pay(task=100, bonus=50, fee_percent=10)
    assert pay.count_fully_paid_people(budget, examples=1, owed_to_others=40) == people


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
        WAYS["link"].panel.build_way_back("https://p.test/?c={code}", "A&B")
        == "https://p.test/?c=A%26B"
    )
    assert (
        WAYS["link"].panel.build_way_back("", "A")
        == WAYS["mturk"].panel.build_way_back("", "")
        == ""
    )


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
    parts = CostParts(
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


def test_who_had_nothing_to_do_here_earns_the_whole() -> None:
    """Such as in a campaign whose work is a questionnaire elsewhere."""
    pay = Pay(task=100, test=20)
    for are_rounds_over in (False, True):
        done_work = DoneWork("write", each=0)
        assert pay.compute_submission_pay(done_work, are_rounds_over=are_rounds_over) == 100
        begun = DoneWork("write", each=2)
        assert pay.compute_submission_pay(begun, are_rounds_over=are_rounds_over) == 20
