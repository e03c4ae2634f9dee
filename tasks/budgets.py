"""The limits that close a round automatically: what it collects, what it costs, when it ends."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True)
class Budget:
    """The limits of a round; None for no limit. Money is in the currency's smallest unit.

    pay_example, pay_validation, pay_bonus: pay for an example, a vote, a verified fooling example.
    """

    max_collected: int | None = None
    max_fooling: int | None = None  # verified fooling examples: validated errors
    max_spent: int | None = None
    ends_at: datetime | None = None
    pay_example: int = 0
    pay_validation: int = 0
    pay_bonus: int = 0  # for a verified fooling example


class UsedBudget(NamedTuple):
    """A round's totals: examples that are not retracted, verified fooling examples, and votes."""

    example_count: int = 0
    fooling_count: int = 0
    vote_count: int = 0


class BudgetLine(NamedTuple):
    """A limit of a budget, with the amount used."""

    name: str  # collected, fooling or money
    used: int
    limit: int


def compute_cost(budget: Budget, used_budget: UsedBudget) -> int:
    """Return the cost of the round so far, in the currency's smallest unit."""
    return (
        budget.pay_example * used_budget.example_count
        + budget.pay_validation * used_budget.vote_count
        + budget.pay_bonus * used_budget.fooling_count
    )


def list_limits(budget: Budget, used_budget: UsedBudget) -> list[BudgetLine]:
    """Return the limits on examples and money that are set, each with the amount used."""
    # In the order in which they are shown and checked.
    amounts = {
        "collected": (used_budget.example_count, budget.max_collected),
        "fooling": (used_budget.fooling_count, budget.max_fooling),
        "money": (compute_cost(budget, used_budget), budget.max_spent),
    }
    return [
        BudgetLine(name, used, limit)
        for name, (used, limit) in amounts.items()
        if limit is not None
    ]


def list_public_limits(budget: Budget, used_budget: UsedBudget) -> list[BudgetLine]:
    """Return the limits on examples that are set. Only owners may see the limit on money.

    >>> list_public_limits(Budget(max_collected=10, max_spent=500), UsedBudget(example_count=4))
    [BudgetLine(name='collected', used=4, limit=10)]
    """
    return [line for line in list_limits(budget, used_budget) if line.name != "money"]


def find_reached_limit(budget: Budget, used_budget: UsedBudget, now: datetime) -> str | None:
    """Return the name of the first limit that is reached, or None.

    The names are date, collected, fooling and money.

    >>> budget, used_budget = Budget(max_collected=10), UsedBudget(example_count=10)
    >>> find_reached_limit(budget, used_budget, datetime(2026, 1, 1))
    'collected'
    """
    # The date comes first: it needs no counts.
    if budget.ends_at is not None and budget.ends_at <= now:
        return "date"
    return next(
        (line.name for line in list_limits(budget, used_budget) if line.used >= line.limit), None
    )
