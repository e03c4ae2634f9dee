"""Numbers of rounds for pages: counted now and then, kept in the cache between."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import perf_counter

from django.core.cache import cache
from django.utils import timezone

from tasks.models import Round
from validation.breakdowns import count, count_cells
from validation.report import Number, measured, standing

KEPT = timedelta(minutes=1)
KEPT_TIMES = 50
"""Numbers are kept for so many times as long as it took to count them, if that is longer."""
LEFT_AFTER = timedelta(days=1)
"""Old numbers stay readable for so long, for those who come while new ones are counted."""
COUNTING_SECONDS = 600
"""After so long another request may count: the one that began it is gone."""

Numbers = Mapping[str, Number]


@dataclass(frozen=True)
class Kept:
    """A round's numbers by name (as `report.measured`), and when they were counted."""

    numbers: Numbers
    counted_at: datetime
    until: datetime


def all_numbers(rounds: Sequence[Round]) -> Mapping[int, Kept]:
    """Every number of rounds of one task, by round id; at most three queries."""

    def fresh(wanted: Sequence[Round]) -> Mapping[int, Numbers]:
        counted = count(wanted)
        return {r.pk: measured(counted.part(r.pk, ""), counted.choices) for r in wanted}

    return _kept("all", rounds, fresh)


def standings(rounds: Sequence[Round]) -> Mapping[int, Kept]:
    """The counts and rates of rounds of any tasks, by round id; at most one query."""

    def fresh(wanted: Sequence[Round]) -> Mapping[int, Numbers]:
        counted = count_cells(wanted)
        return {r.pk: standing(counted.part(r.pk, "")) for r in wanted}

    return _kept("standing", rounds, fresh)


def _kept(
    kind: str,
    rounds: Sequence[Round],
    fresh: Callable[[Sequence[Round]], Mapping[int, Numbers]],
) -> Mapping[int, Kept]:
    """What is kept, counting anew what is too old, unless another request does so just now."""
    keys = {round.pk: f"numbers:{kind}:{round.pk}" for round in rounds}
    cached = cache.get_many(keys.values())
    found: dict[int, Kept] = {pk: cached[key] for pk, key in keys.items() if key in cached}
    now = timezone.now()
    wanted = [
        round
        for round in rounds
        if round.pk not in found
        or (
            found[round.pk].until <= now
            and cache.add(f"{keys[round.pk]}:counting", True, COUNTING_SECONDS)
        )
    ]
    if wanted:
        started = perf_counter()
        numbers = fresh(wanted)
        took = timedelta(seconds=perf_counter() - started)
        until = now + max(KEPT, KEPT_TIMES * took)
        new = {pk: Kept(value, now, until) for pk, value in numbers.items()}
        after = (until - now + LEFT_AFTER).total_seconds()
        cache.set_many({keys[pk]: kept for pk, kept in new.items()}, after)
        cache.delete_many(f"{keys[pk]}:counting" for pk in new)
        found |= new
    return found
