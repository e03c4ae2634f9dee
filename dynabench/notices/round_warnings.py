"""Rules that decide when a notice about a round is open. Pure."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tasks.budgets import Budget, UsedBudget, list_limits

MIN_UNUSED_SHARE = 0.1
"""Contexts are running out if a smaller share of a round's contexts has no example."""
NEARLY_USED_SHARE = 0.9
"""The used share of a budget from which it counts as nearly used up."""
ENDING_SOON_TIME = timedelta(hours=48)
"""How long before its end a round counts as ending soon."""
LATE_JUDGING_TIME = timedelta(days=3)
"""How long an example waits for votes before judging counts as late."""


@dataclass(frozen=True)
class RoundFacts:
    """The facts about a round that notices need.

    Retracted examples and retired contexts are left out. untouched: the number of contexts without
    an example. waiting_late: the number of examples that have waited for votes longer than
    LATE_JUDGING_TIME.
    """

    number: int
    is_open: bool
    contexts: int = 0
    untouched: int = 0
    waiting_late: int = 0
    budget: Budget = field(default_factory=Budget)
    used: UsedBudget = field(default_factory=UsedBudget)


Numbers = dict[str, Any]
"""The values of a notice's sentence, by placeholder."""


def get_judging_numbers(round: RoundFacts) -> Numbers | None:
    """Return how many examples have waited too long for votes, and how many days are too long.

    None if no example has. The round may be closed.
    """
    if not round.waiting_late:
        return None
    return {"count": round.waiting_late, "days": LATE_JUDGING_TIME.days}


def get_context_numbers(round: RoundFacts) -> Numbers | None:
    """Return how many contexts of an open round have no example; None if there are enough."""
    # A round without contexts asks for free texts, which do not run out.
    runs_out = round.contexts and round.untouched < MIN_UNUSED_SHARE * round.contexts
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
        if line.used >= NEARLY_USED_SHARE * line.limit
    ]
    if not near_limits:
        return None
    share = max(line.used / line.limit for line in near_limits)
    return {"percent": int(100 * share)}


def get_end_numbers(round: RoundFacts, now: datetime) -> Numbers | None:
    """Return an empty mapping if an open round ends soon; otherwise None."""
    ends_at = round.budget.ends_at
    if not round.is_open or ends_at is None or ends_at - now > ENDING_SOON_TIME:
        return None
    return {}
