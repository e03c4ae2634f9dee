"""What queue workers do for boards, each minute."""

import logging
import time
from collections.abc import Iterator
from itertools import takewhile
from uuid import UUID

import numpy as np
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from core.errors import Refused
from evaluation.models import CustomMetric, CustomOutcome, EvaluationRun
from evaluation.runs.selectors import counting
from evaluation.scoring.bootstrap import powers_of
from evaluation.scoring.metrics.base import divide
from evaluation.sets.selectors import newest_versions
from leaderboard.board.bootstrap import resample_plain, resample_suite, sum_resamples
from leaderboard.board.rates import may_freeze
from leaderboard.board.services import freeze_rates, note_renewed, store_resamples
from leaderboard.board.sets import shown_sets
from leaderboard.models import Board, Resample
from leaderboard.rounds.following.services import tell_followers
from leaderboard.snapshots.services import take_daily_snapshot
from tasks.config.schema import CUSTOM_PREFIX
from tasks.models import Task

logger = logging.getLogger(__name__)
MOST_SECONDS = 60.0
"""After that, what is left waits for the next call, so that evaluations get their worker."""
Suite = EvaluationRun.Suite
OF_EXAMPLES = ~Q(metric__startswith=CUSTOM_PREFIX)
"""Resamples that are made of a run's answers, not of what an owners' metric gave for them."""


def renew_boards() -> int:
    """Resample the runs that ended, freeze rates and keep snapshots; returns how many runs.

    It may be called at any time, by several workers at once: each step looks whether it is done.
    """
    stop = time.monotonic() + MOST_SECONDS
    made = 0
    for task in Task.objects.filter(evaluation_sets__versions__isnull=False).distinct():
        try:
            made += _renew(task, stop)
        except Exception:
            logger.exception("The board of %s cannot be renewed", task)
    tell_followers()
    return made


def _renew(task: Task, stop: float) -> int:
    began = timezone.now()
    runs = list(unresampled(task).values_list("pk", flat=True))
    made = sum(_resample(pk) for pk in takewhile(lambda _: time.monotonic() < stop, runs))
    own = takewhile(lambda _: time.monotonic() < stop, unresampled_own(task))
    made += sum(_resample_own(pk) for pk in own)
    board = Board.objects.filter(task=task).first()
    ended = EvaluationRun.objects.filter(version__in=newest_versions(task))
    newest = ended.aggregate(newest=Max("finished_at"))["newest"]
    known_to = board.renewed_to if board else None
    if made or known_to is None or (newest and newest > known_to):
        note_renewed(task=task, to=began)
    if not (board and board.rates) and may_freeze(task):
        try:
            freeze_rates(task=task)
        except Refused as reason:
            logger.info("%s: %s", task, reason)
    take_daily_snapshot(task=task, day=began.date())
    return made


def unresampled(task: Task) -> QuerySet[EvaluationRun]:
    """Return the counting runs on counting sets that are not resampled yet, version by version.

    Sealed sets are left out: resamples are exact, and what is shown of these sets is not. Within a
    version the order is random, so that two workers seldom take the same run.
    """
    sets = shown_sets(task)
    versions = [one.version_id for one in sets if one.counts and not one.is_sealed]
    done = Resample.objects.filter(OF_EXAMPLES, run=OuterRef("pk"))
    runs = EvaluationRun.objects.filter(~Exists(done), version__in=versions)
    return counting(runs).order_by("version", "?")


def _resample(pk: UUID) -> bool:
    """Resample a run; False where another worker was first.

    A run whose files are gone or damaged gets an empty value, and is not tried again.
    """
    run = EvaluationRun.objects.select_related("submission__task", "version").get(pk=pk)
    if run.resamples.filter(OF_EXAMPLES).exists():
        return False
    try:
        values = dict(_values(run))
    except (FileNotFoundError, ValueError, KeyError, EvaluationRun.DoesNotExist):
        logger.exception("%s cannot be resampled", run)
        values = {}
    main = run.submission.task.config.metrics.main
    store_resamples(run=run, values=values or {main: b""})
    return True


def unresampled_own(task: Task) -> list[int]:
    """Return outcomes of the owners' approved metrics on counting sets, not yet resampled."""
    metrics = task.custom_metrics.filter(review=CustomMetric.Review.APPROVED)
    if not metrics:
        return []
    versions = [one.version_id for one in shown_sets(task) if one.counts and not one.is_sealed]
    return [
        pk
        for metric in metrics
        for pk in metric.outcomes.filter(failure="", run__version__in=versions)
        .exclude(run__resamples__metric=metric.key)
        .values_list("pk", flat=True)
    ]


def _resample_own(pk: int) -> bool:
    """Resample a number of each example, by the draws that the other metrics have."""
    outcome = CustomOutcome.objects.select_related("metric__task", "run__version").get(pk=pk)
    run, numbers = outcome.run, np.frombuffer(outcome.values, dtype="<f4")
    statistics = ((place, (number,)) for place, number in enumerate(numbers.tolist()))
    (sums,) = sum_resamples(statistics, [powers_of], run.version.sha256)
    values = divide(sums[:, 1], sums[:, 0])
    metric = outcome.metric.key
    store_resamples(run=run, values={metric: np.asarray(values, dtype="<f4").tobytes()})
    return True


def _values(run: EvaluationRun) -> Iterator[tuple[str, bytes]]:
    """Yield each metric with the bytes of its resampled values."""
    found = resample_plain(run) if run.suite == Suite.PLAIN else resample_suite(run)
    for metric, values in found.items():
        yield metric, np.asarray(values, dtype="<f4").tobytes()
