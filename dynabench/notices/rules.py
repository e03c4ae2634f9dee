"""When owners should be told of something in their task. Pure."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tasks.budgets import Budget, UsedBudget, list_limits

FEW_SHARE = 0.1
"""Contexts run out when less than this share of a round's contexts has no example yet."""
NEAR_SHARE = 0.9
"""A budget nears its end when this share of it is used."""
ENDS_WITHIN = timedelta(hours=48)
"""A round ends soon when it ends within this time."""
LATE_AFTER = timedelta(days=3)
"""Judging lags when an example has waited this long for votes."""


@dataclass(frozen=True)
class RoundFacts:
    """The facts about a round that notices need.

    Excludes retracted examples and retired contexts. untouched: contexts without an
    example. waiting_late: examples that have waited for votes for longer than LATE.
    """

    number: int
    is_open: bool
    contexts: int = 0
    untouched: int = 0
    waiting_late: int = 0
    budget: Budget = field(default_factory=Budget)
    used: UsedBudget = field(default_factory=UsedBudget)


Numbers = dict[str, Any]
"""What the sentence of a notice says, by name."""


def get_judging_numbers(round: RoundFacts) -> Numbers | None:
    """Return how many examples have waited too long for votes; None if none has.

    The round need not be open.
    """
    if not round.waiting_late:
        return None
    return {"count": round.waiting_late, "days": LATE_AFTER.days}


def get_context_numbers(round: RoundFacts) -> Numbers | None:
    """Return how many contexts of an open round have no example; None if there are enough."""
    # A round without contexts asks for free texts, which do not run out.
    runs_out = round.contexts and round.untouched < FEW_SHARE * round.contexts
    if not (round.is_open and runs_out):
        return None
    return {"count": round.untouched, "all": round.contexts}


def get_budget_numbers(round: RoundFacts) -> Numbers | None:
    """Return how much of an open round's budget is used; None if it is not near its end."""
    if not round.is_open:
        return None
    # A budget may limit several things; the one nearest its end is reported.
    near_limits = [
        line
        for line in list_limits(round.budget, round.used)
        if line.used >= NEAR_SHARE * line.limit
    ]
    if not near_limits:
        return None
    share = max(line.used / line.limit for line in near_limits)
    return {"percent": int(100 * share)}


def get_end_numbers(round: RoundFacts, now: datetime) -> Numbers | None:
    """Return an empty mapping if an open round ends soon; otherwise None."""
    ends_at = round.budget.ends_at
    if not round.is_open or ends_at is None or ends_at - now > ENDS_WITHIN:
        return None
    return {}
