"""What closes a round by itself."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.budgets import Budget, Line, Used, lines, reached, spent

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
PAID = Budget(money=1000, pay_example=50, pay_validation=10, pay_bonus=100)
amounts = st.integers(0, 500)
limits = st.none() | amounts
budgets = st.builds(
    Budget,
    collected=limits,
    fooling=limits,
    money=limits,
    pay_example=amounts,
    pay_validation=amounts,
    pay_bonus=amounts,
)
uses = st.builds(Used, amounts, amounts, amounts)


@pytest.mark.parametrize(
    ("budget", "used", "found"),
    [
        (Budget(), Used(10**6, 10**6, 10**6), None),
        (Budget(collected=10), Used(collected=9), None),
        (Budget(collected=10), Used(collected=10), "collected"),
        (Budget(collected=10), Used(fooling=10), None),
        (Budget(fooling=3), Used(collected=9, fooling=3), "fooling"),
        (PAID, Used(collected=10, fooling=3, votes=19), None),
        (PAID, Used(collected=10, fooling=3, votes=20), "money"),
        (Budget(ends_at=NOW + timedelta(seconds=1)), Used(), None),
        (Budget(ends_at=NOW), Used(), "date"),
        (Budget(ends_at=NOW, collected=1), Used(collected=1), "date"),
        (Budget(collected=1, fooling=1), Used(1, 1, 1), "collected"),
        (Budget(collected=0), Used(), "collected"),
    ],
)
def test_the_limit_that_is_reached_is_named(budget, used, found):
    assert reached(budget, used, NOW) == found


def test_money_counts_examples_votes_and_bonuses():
    assert spent(PAID, Used(collected=2, fooling=1, votes=3)) == 100 + 30 + 100


def test_lines_are_the_limits_that_are_set():
    budget = Budget(collected=10, money=500, pay_example=20)
    assert lines(budget, Used(collected=4)) == [Line("collected", 4, 10), Line("money", 80, 500)]


@given(budgets, uses, uses)
def test_what_is_reached_stays_reached_when_more_is_used(budget, used, more):
    later = Used(*(a + b for a, b in zip(used, more, strict=True)))
    if reached(budget, used, NOW):
        assert reached(budget, later, NOW)


@given(budgets, uses)
def test_a_budget_is_reached_when_a_line_is_full(budget, used):
    full = [line.name for line in lines(budget, used) if line.used >= line.limit]
    assert reached(budget, used, NOW) == (full[0] if full else None)
