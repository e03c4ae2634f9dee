"""Numbers of rounds for pages: counted now and then, kept in the cache between.

A page never waits for the count of a large round: a thread counts, and until then the page shows
the numbers of before, or none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Thread
from time import perf_counter

from django.core.cache import cache
from django.db import connection
from django.utils import timezone

from annotation.models import Example
from tasks.models import Round
from validation.breakdowns import count, count_cells
from validation.report import Number, measured, standing

LARGE = 20_000
"""Rounds with more examples together are counted beside the request."""
KEPT = timedelta(minutes=1)
KEPT_TIMES = 50
"""Numbers are kept for so many times as long as it took to count them, if that is longer."""
READABLE = timedelta(days=1)
"""Old numbers can be shown for so long, while new ones are counted."""
COUNTING_SECONDS = 900
"""After so long another thread may count: the process of the one that began is gone."""

Numbers = Mapping[str, Number]
Count = Callable[[Sequence[Round]], Mapping[int, Numbers]]


@dataclass(frozen=True)
class Kept:
    """A round's numbers by name (as `report.measured`), and when they were counted."""

    numbers: Numbers
    counted_at: datetime
    until: datetime


def all_numbers(rounds: Sequence[Round]) -> Mapping[int, Kept]:
    """Every number of rounds of one task, by round id; large ones are missing at first.

    At most four queries.
    """
    return _kept("all", rounds, _all)


def standings(rounds: Sequence[Round]) -> Mapping[int, Kept]:
    """The counts and rates of rounds of any tasks, likewise; at most two queries."""
    return _kept("standing", rounds, _standings)


def _all(rounds: Sequence[Round]) -> Mapping[int, Numbers]:
    counted = count(rounds)
    return {r.pk: measured(counted.part(r.pk, ""), counted.choices) for r in rounds}


def _standings(rounds: Sequence[Round]) -> Mapping[int, Numbers]:
    counted = count_cells(rounds)
    return {r.pk: standing(counted.part(r.pk, "")) for r in rounds}


def _kept(kind: str, rounds: Sequence[Round], fresh: Count) -> dict[int, Kept]:
    keys = {_key(kind, round): round.pk for round in rounds}
    found: dict[int, Kept] = {keys[key]: kept for key, kept in cache.get_many(keys).items()}
    now = timezone.now()
    old = [r for r in rounds if r.pk not in found or found[r.pk].until <= now]
    if not old:
        return found
    if Example.objects.filter(round__in=old)[: LARGE + 1].count() <= LARGE:
        return found | _count(kind, old, fresh)
    mine = [r for r in old if cache.add(f"{_key(kind, r)}:counting", True, COUNTING_SECONDS)]
    if mine:
        Thread(target=_count_beside, args=(kind, mine, fresh), daemon=True).start()
    return found


def _key(kind: str, round: Round) -> str:
    return f"numbers:{kind}:{round.pk}"


def _count(kind: str, rounds: Sequence[Round], fresh: Count) -> dict[int, Kept]:
    """Count and keep."""
    now, started = timezone.now(), perf_counter()
    numbers = fresh(rounds)
    took = timedelta(seconds=perf_counter() - started)
    until = now + max(KEPT, KEPT_TIMES * took)
    found = {round.pk: Kept(numbers[round.pk], now, until) for round in rounds}
    seconds = (until - now + READABLE).total_seconds()
    cache.set_many({_key(kind, round): found[round.pk] for round in rounds}, seconds)
    return found


def _count_beside(kind: str, rounds: Sequence[Round], fresh: Count) -> None:
    """The same in a thread, on a connection of its own."""
    try:
        _count(kind, rounds, fresh)
    finally:
        cache.delete_many(f"{_key(kind, round)}:counting" for round in rounds)
        connection.close()
