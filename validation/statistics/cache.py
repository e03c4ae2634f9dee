"""Caches the numbers of rounds for pages; numbers that take long to count are kept for longer.

A page never waits for the count of a large round: a thread counts, and meanwhile the page shows
the old numbers, or none.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Thread
from time import perf_counter
from typing import Any

from django.core.cache import cache
from django.db import connection
from django.utils import timezone

from annotation.models import Example
from tasks.models import Round
from validation.statistics import report
from validation.statistics.counts import count, count_cells
from validation.statistics.report import Number, measured, task_report

LARGE = 20_000
"""Rounds with more examples together are counted in a thread."""
KEPT = timedelta(minutes=1)
KEPT_TIMES = 50
"""Numbers are kept for so many times as long as it took to count them, if that is longer."""
READABLE = timedelta(days=1)
"""Old numbers can be shown for so long, while new ones are counted."""
COUNTING_SECONDS = 900
"""After so long another thread may count: the process of the one that began is gone."""

Numbers = Mapping[str, Number]
Wanted = Mapping[str, Sequence[Round]]
"""The rounds that are counted together, by a name of theirs."""
Count = Callable[[Wanted], Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Kept:
    """Numbers by name (as `report.measured`, or a whole report), and when they were counted."""

    numbers: Numbers
    counted_at: datetime
    until: datetime


def all_numbers(rounds: Sequence[Round]) -> Mapping[int, Kept]:
    """Every number of rounds of one task, by round id; large ones are missing at first.

    At most four queries.
    """
    return _of_each("all", rounds, _all)


def headline_numbers(rounds: Sequence[Round]) -> Mapping[int, Kept]:
    """The counts and rates that need no votes, of rounds of any tasks; at most two queries."""
    return _of_each("headline", rounds, _headlines)


def numbers_with(kind: str, round: Round, count: Callable[[Round], Any]) -> Kept | None:
    """A round's numbers and, under `kind`, what is counted at the same time, so that they agree.

    None while a large round is counted for the first time.
    """

    def together(wanted: Wanted) -> Mapping[str, Numbers]:
        return {name: {**found, kind: count(round)} for name, found in _all(wanted).items()}

    return _of_each(kind, [round], together).get(round.pk)


def kept_report(rounds: Sequence[Round], *, code: str) -> Kept | None:
    """`report.task_report` of rounds of one task; None while it is counted for the first time."""
    name = hashlib.sha256(str([round.pk for round in rounds]).encode()).hexdigest()

    def count(wanted: Wanted) -> Mapping[str, Mapping[str, Any]]:
        return {name: task_report(rounds, code=code)}

    return _kept(f"report:{code}", {name: rounds}, count).get(name)


def _all(wanted: Wanted) -> Mapping[str, Numbers]:
    rounds = [round for (round,) in wanted.values()]
    counted = count(rounds)
    return {str(r.pk): measured(counted.part(r.pk, ""), counted.choices) for r in rounds}


def _headlines(wanted: Wanted) -> Mapping[str, Numbers]:
    rounds = [round for (round,) in wanted.values()]
    counted = count_cells(rounds)
    return {str(r.pk): report.headline_numbers(counted.part(r.pk, "")) for r in rounds}


def _of_each(kind: str, rounds: Sequence[Round], fresh: Count) -> dict[int, Kept]:
    found = _kept(kind, {str(round.pk): [round] for round in rounds}, fresh)
    return {int(name): kept for name, kept in found.items()}


def _kept(kind: str, wanted: Wanted, fresh: Count) -> dict[str, Kept]:
    keys = {_key(kind, name): name for name in wanted}
    found: dict[str, Kept] = {keys[key]: kept for key, kept in cache.get_many(keys).items()}
    now = timezone.now()
    old = {
        name: rounds
        for name, rounds in wanted.items()
        if name not in found or found[name].until <= now
    }
    if not old:
        return found
    counted = [round for rounds in old.values() for round in rounds]
    if Example.objects.filter(round__in=counted)[: LARGE + 1].count() <= LARGE:
        return found | _count(kind, old, fresh)
    mine = {
        name: rounds
        for name, rounds in old.items()
        if cache.add(f"{_key(kind, name)}:counting", True, COUNTING_SECONDS)
    }
    if mine:
        Thread(target=_count_in_thread, args=(kind, mine, fresh), daemon=True).start()
    return found


def _key(kind: str, name: str) -> str:
    return f"numbers:{kind}:{name}"


def _count(kind: str, wanted: Wanted, fresh: Count) -> dict[str, Kept]:
    """Count and keep."""
    now, started = timezone.now(), perf_counter()
    numbers = fresh(wanted)
    took = timedelta(seconds=perf_counter() - started)
    until = now + max(KEPT, KEPT_TIMES * took)
    found = {name: Kept(numbers[name], now, until) for name in wanted}
    seconds = (until - now + READABLE).total_seconds()
    cache.set_many({_key(kind, name): kept for name, kept in found.items()}, seconds)
    return found


def _count_in_thread(kind: str, wanted: Wanted, fresh: Count) -> None:
    """The same in a thread, on another connection."""
    try:
        _count(kind, wanted, fresh)
    finally:
        cache.delete_many(f"{_key(kind, name)}:counting" for name in wanted)
        connection.close()
