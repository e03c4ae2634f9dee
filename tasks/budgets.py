"""What closes a round by itself: how much it may collect and cost, and when it ends."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True)
class Budget:
    """The limits of a round; None for no limit. Money is in the currency's smallest unit."""

    collected: int | None = None
    fooling: int | None = None  # verified fooling examples: validated errors
    money: int | None = None
    ends_at: datetime | None = None
    pay_example: int = 0
    pay_validation: int = 0
    pay_bonus: int = 0  # for a verified fooling example


class UsedBudget(NamedTuple):
    """A round's totals: examples that are not retracted, verified fooling examples, and votes."""

    collected: int = 0
    fooling: int = 0
    votes: int = 0


class BudgetLine(NamedTuple):
    """One limit of a budget, with the amount used."""

    name: str  # collected, fooling or money
    used: int
    limit: int


def compute_cost(budget: Budget, used_budget: UsedBudget) -> int:
    """Return the cost of the round so far, in the currency's smallest unit."""
    return (
        budget.pay_example * used_budget.collected
        + budget.pay_validation * used_budget.votes
        + budget.pay_bonus * used_budget.fooling
    )


def list_limits(budget: Budget, used_budget: UsedBudget) -> list[BudgetLine]:
    """Return the limits that are set, each with the amount used."""
    amounts = {
        "collected": (used_budget.collected, budget.collected),
        "fooling": (used_budget.fooling, budget.fooling),
        "money": (compute_cost(budget, used_budget), budget.money),
    }
    return [BudgetLine(name, n, limit) for name, (n, limit) in amounts.items() if limit is not None]


def find_reached_limit(budget: Budget, used_budget: UsedBudget, now: datetime) -> str | None:
    """Return the first limit reached: date, collected, fooling or money; None if there is none.

    >>> reached(Budget(collected=10), Used(collected=10), datetime(2026, 1, 1))
    'collected'
    """
    # The date comes first: it needs no counts.
    if budget.ends_at is not None and budget.ends_at <= now:
        return "date"
    return next(
        (line.name for line in list_limits(budget, used_budget) if line.used >= line.limit), None
    )
