"""Caches the numbers of rounds for pages; numbers that take long to count are kept for longer.

A page never waits for the count of a large round: a thread counts, and meanwhile the page shows
the old numbers, or none.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.core.cache import cache

from annotation.models import Example
from core.data.adaptive_cache import Kept, kept_many
from tasks.models import Round
from validation.statistics import report
from validation.statistics.counts import count, count_cells
from validation.statistics.report import Number, measure_part, task_report

LARGE = 20_000
"""Rounds with more examples together are counted in a thread."""
Numbers = Mapping[str, Number]
Wanted = Mapping[str, Sequence[Round]]
"""The rounds that are counted together, by a name of theirs."""
Count = Callable[[Wanted], Mapping[str, Mapping[str, Any]]]


def all_numbers(rounds: Sequence[Round]) -> Mapping[int, Kept]:
    """Return all statistics of rounds of one task, by round id.

    Large rounds are missing until they have been counted. At most four queries.
    """
    return _get_round_entries("all", rounds, _all)


def headline_numbers(rounds: Sequence[Round]) -> Mapping[int, Kept]:
    """Return the counts and rates that need no votes, by round id, for rounds of any tasks.

    At most two queries.
    """
    return _get_round_entries("headline", rounds, _headlines)


def read_cached_numbers(kind: str, round: Round, count: Callable[[Round], Any]) -> Kept | None:
    """Return a round's cached numbers and a count stored under `kind`, computed together.

    None while a large round is counted for the first time. An empty round is recounted as soon as
    somebody has written, so that no page shows an empty round beside its examples.
    """

    def together(rounds_by_name: Wanted) -> Mapping[str, Numbers]:
        return {
            name: {**numbers, kind: count(round)} for name, numbers in _all(rounds_by_name).items()
        }

    round_numbers = _get_round_entries(kind, [round], together).get(round.pk)
    if round_numbers is None or round_numbers.numbers["collected"] or not _has_tries(round):
        return round_numbers
    cache.delete(_key(kind, str(round.pk)))
    return _get_round_entries(kind, [round], together).get(round.pk)


def _has_tries(round: Round) -> bool:
    return round.examples.filter(by_program=False, retracted_at=None).exists()


def read_cached_report(rounds: Sequence[Round], *, code: str) -> Kept | None:
    """Return the cached `report.task_report` of rounds of one task.

    None while it is computed for the first time.
    """
    # A digest, as the keys of caches are limited and a task may have many rounds.
    name = hashlib.sha256(str([round.pk for round in rounds]).encode()).hexdigest()

    def count(rounds_by_name: Wanted) -> Mapping[str, Mapping[str, Any]]:
        return {name: task_report(rounds, code=code)}

    return _get_entries(f"report:{code}", {name: rounds}, count).get(name)


def _all(rounds_by_name: Wanted) -> Mapping[str, Numbers]:
    rounds = [round for (round,) in rounds_by_name.values()]
    counted = count(rounds)
    return {str(r.pk): measure_part(counted.part(r.pk, ""), counted.choices) for r in rounds}


def _headlines(rounds_by_name: Wanted) -> Mapping[str, Numbers]:
    rounds = [round for (round,) in rounds_by_name.values()]
    counted = count_cells(rounds)
    return {str(r.pk): report.headline_numbers(counted.part(r.pk, "")) for r in rounds}


def _get_round_entries(kind: str, rounds: Sequence[Round], count_fresh: Count) -> dict[int, Kept]:
    stored = _get_entries(kind, {str(round.pk): [round] for round in rounds}, count_fresh)
    return {int(name): entry for name, entry in stored.items()}


def _key(kind: str, name: str) -> str:
    return f"numbers:{kind}:{name}"


def _get_entries(kind: str, rounds_by_name: Wanted, count_fresh: Count) -> dict[str, Kept]:
    names = {_key(kind, name): name for name in rounds_by_name}

    def count(keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        numbers = count_fresh({names[key]: rounds_by_name[names[key]] for key in keys})
        return {key: numbers[names[key]] for key in keys}

    def is_large(keys: Sequence[str]) -> bool:
        rounds: list[Round] = []
        for key in keys:
            rounds += rounds_by_name[names[key]]
        # A slice, so that the count ends once the rounds are known to be large.
        return Example.objects.filter(round__in=rounds)[: LARGE + 1].count() > LARGE

    return {names[key]: entry for key, entry in kept_many(list(names), count, is_large).items()}
