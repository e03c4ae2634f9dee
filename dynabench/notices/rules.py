"""When owners should be told of something in their task. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tasks.budgets import Budget, UsedBudget, list_limits

FEW = 0.1
"""Contexts run out when less than this share of a round's contexts has no example yet."""
NEAR = 0.9
"""A budget nears its end when this share of it is used."""
SOON = timedelta(hours=48)
"""A round ends soon when it ends within this time."""
LATE = timedelta(days=3)
"""Judging lags when an example has waited this long for votes."""


@dataclass(frozen=True)
class RoundFacts:
    """The facts about a round now, without retracted examples and retired contexts.

    untouched: contexts without an example. waiting_late: examples that wait for votes since longer
    than LATE.
    """

    number: int
    is_open: bool
    contexts: int = 0
    untouched: int = 0
    waiting_late: int = 0
    budget: Budget = field(default_factory=Budget)
    used: UsedBudget = field(default_factory=UsedBudget)


@dataclass(frozen=True)
class TaskFacts:
    """The facts about a task now.

    submitted: models within the last week. out_of_work: people of studies who found no work or no
    test left, in that time. hasty: judges most of whose votes of that week came faster than anybody
    reads.
    """

    rounds: list[RoundFacts] = field(default_factory=list)
    failing: int = 0
    reports: int = 0
    submitted: int = 0
    out_of_work: int = 0
    hasty: int = 0


class Wanted(NamedTuple):
    """A notice that should be open: its kind, its round (0: the task) and its numbers."""

    kind: str
    round: int
    numbers: dict[str, Any]


def wanted(facts: TaskFacts, now: datetime) -> Iterator[Wanted]:
    """Yield the notices that a task should have now."""
    for round in facts.rounds:
        yield from _of_round(round, now)
    counts = {
        "target": facts.failing,
        "reports": facts.reports,
        "models": facts.submitted,
        "studies": facts.out_of_work,
        "reading": facts.hasty,
    }
    for kind, count in counts.items():
        if count:
            yield Wanted(kind, 0, {"count": count})


def _of_round(round: RoundFacts, now: datetime) -> Iterator[Wanted]:
    """Yield the notices that a round should have now; only judging matters once it is not open."""
    if round.waiting_late:
        yield Wanted("judging", round.number, {"count": round.waiting_late, "days": LATE.days})
    if not round.is_open:
        return
    # A round without contexts asks for free texts, which do not run out.
    if round.contexts and round.untouched < FEW * round.contexts:
        yield Wanted("contexts", round.number, {"count": round.untouched, "all": round.contexts})
    # A budget may limit several things; the one nearest its end is reported.
    near = [
        line for line in list_limits(round.budget, round.used) if line.used >= NEAR * line.limit
    ]
    if near:
        share = max(line.used / line.limit for line in near)
        yield Wanted("budget", round.number, {"percent": int(100 * share)})
    ends_at = round.budget.ends_at
    if ends_at and ends_at - now <= SOON:
        yield Wanted("end", round.number, {})
