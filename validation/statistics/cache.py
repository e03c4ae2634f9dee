"""A cache of rounds' numbers for pages. Numbers that take long to count stay valid for longer.

A page never waits for the count of a large round. While a thread counts, the page shows the old
numbers, or none.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.core.cache import cache

from annotation.models import Example
from core.data.adaptive_cache import CachedResult, read_or_count_many
from tasks.models import Round
from validation.statistics import report
from validation.statistics.counts import count_cells, count_rounds
from validation.statistics.report import Number, build_task_report, measure_part

MIN_LARGE_ROUND_EXAMPLES = 20_000
"""Rounds with more examples together are counted in a thread."""
Numbers = Mapping[str, Number]
RoundsByName = Mapping[str, Sequence[Round]]
"""Groups of rounds that are counted together, by the name of the group."""
CountRounds = Callable[[RoundsByName], Mapping[str, Mapping[str, Any]]]


def get_all_numbers(rounds: Sequence[Round]) -> Mapping[int, CachedResult]:
    """Return all statistics of rounds of one task, by round id.

    Large rounds are missing until they have been counted. At most four queries.
    """
    return _get_round_entries("all", rounds, _count_all)


def get_headline_numbers(rounds: Sequence[Round]) -> Mapping[int, CachedResult]:
    """Return the counts and rates that need no votes, by round id, for rounds of any tasks.

    At most two queries.
    """
    return _get_round_entries("headline", rounds, _count_headlines)


def read_cached_numbers(
    kind: str, round: Round, count_round: Callable[[Round], Any]
) -> CachedResult | None:
    """Return a round's cached numbers and a count stored under `kind`, computed together.

    None while a large round is counted for the first time. An empty round is recounted as soon as
    somebody has written, so that no page shows an empty round beside its examples.
    """

    def count_together(rounds_by_name: RoundsByName) -> Mapping[str, Numbers]:
        return {
            name: {**numbers, kind: count_round(round)}
            for name, numbers in _count_all(rounds_by_name).items()
        }

    round_numbers = _get_round_entries(kind, [round], count_together).get(round.pk)
    if round_numbers is None or round_numbers.numbers["collected"] or not _has_tries(round):
        return round_numbers
    cache.delete(_build_key(kind, str(round.pk)))
    return _get_round_entries(kind, [round], count_together).get(round.pk)


def _has_tries(round: Round) -> bool:
    return round.examples.filter(by_program=False, retracted_at=None).exists()


def read_cached_report(rounds: Sequence[Round], *, code: str) -> CachedResult | None:
    """Return the cached `report.build_task_report` of rounds of one task.

    None while it is computed for the first time.
    """
    # A digest, because cache keys are limited in length and a task may have many rounds.
    name = hashlib.sha256(str([round.pk for round in rounds]).encode()).hexdigest()

    def build_report(_rounds_by_name: RoundsByName) -> Mapping[str, Mapping[str, Any]]:
        return {name: build_task_report(rounds, code=code)}

    return _get_entries(f"report:{code}", {name: rounds}, build_report).get(name)


def _count_all(rounds_by_name: RoundsByName) -> Mapping[str, Numbers]:
    rounds = [round for (round,) in rounds_by_name.values()]
    report_data = count_rounds(rounds)
    return {
        str(round.pk): measure_part(
            report_data.get_or_create_part(round.pk, ""), report_data.choices
        )
        for round in rounds
    }


def _count_headlines(rounds_by_name: RoundsByName) -> Mapping[str, Numbers]:
    rounds = [round for (round,) in rounds_by_name.values()]
    round_counts = count_cells(rounds)
    return {
        str(round.pk): report.compute_headline_numbers(
            round_counts.get_or_create_part(round.pk, "")
        )
        for round in rounds
    }


def _get_round_entries(
    kind: str, rounds: Sequence[Round], count_fresh: CountRounds
) -> dict[int, CachedResult]:
    entries = _get_entries(kind, {str(round.pk): [round] for round in rounds}, count_fresh)
    return {int(name): entry for name, entry in entries.items()}


def _build_key(kind: str, name: str) -> str:
    return f"numbers:{kind}:{name}"


def _get_entries(
    kind: str, rounds_by_name: RoundsByName, count_fresh: CountRounds
) -> dict[str, CachedResult]:
    names = {_build_key(kind, name): name for name in rounds_by_name}

    def count_entries(keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        numbers = count_fresh({names[key]: rounds_by_name[names[key]] for key in keys})
        return {key: numbers[names[key]] for key in keys}

    def is_large(keys: Sequence[str]) -> bool:
        rounds: list[Round] = []
        for key in keys:
            rounds += rounds_by_name[names[key]]
        # A slice, so that the count ends once the rounds are known to be large.
        return (
            Example.objects.filter(round__in=rounds)[: MIN_LARGE_ROUND_EXAMPLES + 1].count()
            > MIN_LARGE_ROUND_EXAMPLES
        )

    return {
        names[key]: entry
        for key, entry in read_or_count_many(list(names), count_entries, is_large).items()
    }
