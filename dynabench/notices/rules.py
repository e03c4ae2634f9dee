"""When owners should be told of something in their task. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tasks.budgets import Budget, Used, lines

FEW = 0.1
"""Contexts run out when less than this share of a round's has no example yet."""
NEAR = 0.9
"""A budget nears its end when this share of it is used."""
SOON = timedelta(hours=48)
LATE = timedelta(days=3)
"""Judging lags when an example has waited for votes so long."""


@dataclass(frozen=True)
class RoundFacts:
    """What a round has now. Counts are of examples and contexts that stand."""

    number: int
    is_open: bool
    contexts: int = 0
    untouched: int = 0
    waiting_late: int = 0  # for votes, since longer than LATE
    budget: Budget = field(default_factory=Budget)
    used: Used = field(default_factory=Used)


@dataclass(frozen=True)
class TaskFacts:
    """What a task has now; submitted: models within the last week.

    out_of_work: the people of studies who found no work or no test left, in that time.
    hasty: judges most of whose votes of that week came faster than anybody reads.
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
    """The notices that a task should have now."""
    for one in facts.rounds:
        yield from _of_round(one, now)
    for kind, count in (
        ("target", facts.failing),
        ("reports", facts.reports),
        ("models", facts.submitted),
        ("studies", facts.out_of_work),
        ("reading", facts.hasty),
    ):
        if count:
            yield Wanted(kind, 0, {"count": count})


def _of_round(one: RoundFacts, now: datetime) -> Iterator[Wanted]:
    if one.waiting_late:
        yield Wanted("judging", one.number, {"count": one.waiting_late, "days": LATE.days})
    if not one.is_open:
        return
    if one.contexts and one.untouched < FEW * one.contexts:
        yield Wanted("contexts", one.number, {"count": one.untouched, "all": one.contexts})
    near = [line for line in lines(one.budget, one.used) if line.used >= NEAR * line.limit]
    if near:
        share = max(line.used / line.limit for line in near)
        yield Wanted("budget", one.number, {"percent": int(100 * share)})
    ends_at = one.budget.ends_at
    if ends_at and ends_at - now <= SOON:
        yield Wanted("end", one.number, {})
