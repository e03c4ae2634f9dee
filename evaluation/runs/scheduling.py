"""Whose run comes next: no one's many runs keep another's waiting."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Waiting:
    """A run that waits. owner: None is the platform itself."""

    pk: Any
    owner: int | None
    priority: int  # higher first
    queued_at: datetime


@dataclass(frozen=True)
class Served:
    """What an owner has had: runs that run now, and when the last one began."""

    running: int = 0
    last: datetime = LONG_AGO


def in_turn(waiting: Iterable[Waiting], served: Mapping[int | None, Served]) -> list[Waiting]:
    """The runs in the order in which free workers take them.

    By priority; then the owner with the fewest runs under way, among equals the one whose last
    run began longest ago; an owner's own runs by age.
    """
    keyed: list[tuple[tuple[int, int, datetime, datetime], Waiting]] = []
    ahead: Counter[int | None] = Counter()
    for run in sorted(waiting, key=lambda run: (-run.priority, run.queued_at)):
        had = served.get(run.owner, Served())
        place = had.running + ahead[run.owner]
        ahead[run.owner] += 1
        keyed.append(((-run.priority, place, had.last, run.queued_at), run))
    return [run for _, run in sorted(keyed, key=lambda pair: pair[0])]
