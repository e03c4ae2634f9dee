"""The simulated calendar: a round that was played within a minute is spread over a week."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from annotation.models import Assignment, Attempt, Example, Report
from tasks.models import Round
from validation.models import Consensus, GoldAnswer, JudgeLease, Skip, Validation

WEEK = timedelta(days=7)
HOURS_PER_WORKING_HOUR = 20  # people work for one of this many hours


@transaction.atomic
def date_back(round: Round, weeks: int) -> None:
    """Spread the timestamps of a closed round over a week that ended `weeks` weeks ago."""
    now, opened_at = timezone.now(), round.opened_at
    assert opened_at
    factor = WEEK / (now - opened_at)

    def move_time(time: datetime | None) -> datetime | None:
        return time and now - weeks * WEEK - factor * (now - time)

    for rows, columns in _list_dated_rows(round):
        changed_rows = list(rows)
        for row in changed_rows:
            for column in columns:
                setattr(row, column, move_time(getattr(row, column)))
        rows.model._default_manager.bulk_update(changed_rows, columns, batch_size=100)
    examples = list(Example.objects.filter(round=round, shown_at__isnull=False))
    # Writing took seconds of the week, not hours.
    for example in examples:
        writing_time = example.created_at - example.shown_at  # type: ignore[operator]
        example.shown_at = example.created_at - writing_time / HOURS_PER_WORKING_HOUR
    Example.objects.bulk_update(examples, ["shown_at"], batch_size=100)


def _list_dated_rows(round: Round) -> Iterator[tuple[QuerySet[Any], Sequence[str]]]:
    """Yield (rows that people created in the round, their timestamp columns)."""
    example_filter = {"example__round": round}
    yield Round.objects.filter(pk=round.pk), ("opened_at", "closed_at", "writing_until")
    yield Assignment.objects.filter(round=round), ("assigned_at", "left_at")
    yield Attempt.objects.filter(assignment__round=round), ("asked_at", "held_until")
    yield Example.objects.filter(round=round), ("created_at", "shown_at", "retracted_at")
    yield Report.objects.filter(context__round=round), ("created_at",)
    yield JudgeLease.objects.filter(**example_filter), ("leased_at", "until")
    yield Skip.objects.filter(**example_filter), ("created_at",)
    yield Validation.objects.filter(**example_filter), ("created_at",)
    yield Consensus.objects.filter(round=round), ("decided_at",)
    yield _find_gold_answers(round), ("created_at",)


def _find_gold_answers(round: Round) -> QuerySet[GoldAnswer]:
    return GoldAnswer.objects.filter(gold__example__round=round)
