"""What closes a round by itself."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.budgets import (
    Budget,
    BudgetLine,
    UsedBudget,
    compute_cost,
    find_reached_limit,
    list_limits,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
PAID = Budget(max_spent=1000, pay_example=50, pay_validation=10, pay_bonus=100)
amounts = st.integers(0, 500)
limits = st.none() | amounts
budgets = st.builds(
    Budget,
    max_collected=limits,
    max_fooling=limits,
    max_spent=limits,
    pay_example=amounts,
    pay_validation=amounts,
    pay_bonus=amounts,
)
uses = st.builds(UsedBudget, amounts, amounts, amounts)


@pytest.mark.parametrize(
    ("budget", "used", "found"),
    [
        (Budget(), UsedBudget(10**6, 10**6, 10**6), None),
        (Budget(max_collected=10), UsedBudget(example_count=9), None),
        (Budget(max_collected=10), UsedBudget(example_count=10), "collected"),
        (Budget(max_collected=10), UsedBudget(fooling_count=10), None),
        (Budget(max_fooling=3), UsedBudget(example_count=9, fooling_count=3), "fooling"),
        (PAID, UsedBudget(example_count=10, fooling_count=3, vote_count=19), None),
        (PAID, UsedBudget(example_count=10, fooling_count=3, vote_count=20), "money"),
        (Budget(ends_at=NOW + timedelta(seconds=1)), UsedBudget(), None),
        (Budget(ends_at=NOW), UsedBudget(), "date"),
        (Budget(ends_at=NOW, max_collected=1), UsedBudget(example_count=1), "date"),
        (Budget(max_collected=1, max_fooling=1), UsedBudget(1, 1, 1), "collected"),
        (Budget(max_collected=0), UsedBudget(), "collected"),
    ],
)
def test_the_limit_that_is_reached_is_named(budget, used, found):
    assert find_reached_limit(budget, used, NOW) == found


def test_money_counts_examples_votes_and_bonuses():
    assert (
        compute_cost(PAID, UsedBudget(example_count=2, fooling_count=1, vote_count=3))
        == 100 + 30 + 100
    )


def test_lines_are_the_limits_that_are_set():
    budget = Budget(max_collected=10, max_spent=500, pay_example=20)
    assert list_limits(budget, UsedBudget(example_count=4)) == [
        BudgetLine("collected", 4, 10),
        BudgetLine("money", 80, 500),
    ]


@given(budgets, uses, uses)
def test_what_is_reached_stays_reached_when_more_is_used(budget, used, more):
    later = UsedBudget(*(a + b for a, b in zip(used, more, strict=True)))
    if find_reached_limit(budget, used, NOW):
        assert find_reached_limit(budget, later, NOW)


@given(budgets, uses)
def test_a_budget_is_reached_when_a_line_is_full(budget, used):
    full = [line.name for line in list_limits(budget, used) if line.used >= line.limit]
    assert find_reached_limit(budget, used, NOW) == (full[0] if full else None)
