"""The jobs of queue workers: bring boards up to date each minute, and ask judges of arenas."""

import logging
import time
from collections.abc import Iterator
from uuid import UUID

import numpy as np
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from core.errors import Refused
from core.periodic import register_minutely
from evaluation.isolation.queue.leases import claim_job
from evaluation.isolation.queue.lifecycle import do_claimed_job
from evaluation.models import CustomMetric, CustomOutcome, EvaluationRun
from evaluation.runs.selectors import filter_counting_runs
from evaluation.scoring.bootstrap import compute_statistic_powers
from evaluation.scoring.metrics.base import divide
from evaluation.test_sets.selectors import select_newest_versions
from leaderboard.arena.judges.services import run_arena_judge
from leaderboard.board.bootstrap import resample_plain, resample_suite, sum_resamples
from leaderboard.board.rates import may_freeze_rates
from leaderboard.board.services import (
    freeze_rates,
    record_renewal,
    store_first_models,
    store_resamples,
)
from leaderboard.board.sets import list_shown_sets
from leaderboard.models import ArenaJudge, Board, Resample
from leaderboard.rounds.following.services import email_followers
from leaderboard.snapshots.services import take_daily_snapshot
from tasks.config.schema import CUSTOM_PREFIX
from tasks.models import Task

logger = logging.getLogger(__name__)
MAX_SECONDS = 60.0
"""Seconds after which other runs wait for the next call, so that evaluations get a worker."""
Suite = EvaluationRun.Suite
EXAMPLE_METRICS_CONDITION = ~Q(metric__startswith=CUSTOM_PREFIX)
"""The condition for resamples of the task's usual metrics, without the owners' own metrics."""


@register_minutely(counts="runs resampled", why="Boards show intervals for every finished run.")
def renew_boards() -> int:
    """Bring all boards up to date; return how many runs were resampled.

    Can be called at any time, by several workers at once, because each step checks whether it is
    already done. For each task with an evaluation set:

    1. Resample the finished runs, and the results of the owners' metrics for them, until
       MAX_SECONDS have passed.
    2. Record the time of the renewal, so that pages read the numbers again.
    3. Freeze exchange rates, the first time that enough models are complete.
    4. Store the first models for lists of tasks, if the board has changed.
    5. Take a snapshot, once a day and only if the board differs.

    Then email followers about new releases.
    """
    # One time limit for all boards, because many of them would keep the worker busy.
    stop_at = time.monotonic() + MAX_SECONDS
    resampled_count = 0
    for task in Task.objects.filter(evaluation_sets__versions__isnull=False).distinct():
        try:
            resampled_count += _renew_board(task, stop_at)
        except Exception:  # one board that fails must not stop the others
            logger.exception("The board of %s cannot be renewed", task)
    email_followers()
    return resampled_count


def _renew_board(task: Task, stop_at: float) -> int:
    """Bring a task's board up to date; return how many runs were resampled."""
    # Read the time first, so that a run that ends during this call is newer.
    began_at = timezone.now()
    resampled_count = _resample_new_runs(task, stop_at)
    board = Board.objects.filter(task=task).first()
    ended_runs = EvaluationRun.objects.filter(version__in=select_newest_versions(task))
    newest_finished_at = ended_runs.aggregate(newest=Max("finished_at"))["newest"]
    renewed_to = board.renewed_to if board else None
    if (
        resampled_count
        or renewed_to is None
        or (newest_finished_at and newest_finished_at > renewed_to)
    ):
        record_renewal(task=task, renewed_to=began_at)
        board = Board.objects.get(task=task)
    if not (board and board.rates) and may_freeze_rates(task):
        try:
            board = freeze_rates(task=task)
        except Refused as reason:  # too few models show a rate; this is tried again each minute
            logger.info("%s: %s", task, reason)
    store_first_models(task=task, board=board)
    take_daily_snapshot(task=task, day=began_at.date())
    return resampled_count


def _resample_new_runs(task: Task, stop_at: float) -> int:
    """Resample newly finished runs until the time `stop_at`; return how many were resampled.

    stop_at: a value of `time.monotonic`.
    """
    resampled_count = 0
    for run in list(find_unresampled_runs(task).values_list("pk", flat=True)):
        if time.monotonic() >= stop_at:
            return resampled_count
        resampled_count += _resample_run(run)
    for outcome in find_unresampled_outcomes(task):
        if time.monotonic() >= stop_at:
            return resampled_count
        resampled_count += _resample_outcome(outcome)
    return resampled_count


def find_unresampled_runs(task: Task) -> QuerySet[EvaluationRun]:
    """Return the counting runs on counting sets that are not resampled yet, version by version.

    Sealed sets are left out: resamples are exact, and only rounded scores of these sets are shown.
    Within a version the order is random, so that two workers seldom take the same run.
    """
    resampled = Resample.objects.filter(EXAMPLE_METRICS_CONDITION, run=OuterRef("pk"))
    runs = EvaluationRun.objects.filter(~Exists(resampled), version__in=_list_exact_versions(task))
    return filter_counting_runs(runs).order_by("version", "?")


def _list_exact_versions(task: Task) -> list[int]:
    """Return the newest versions of counting sets that are not sealed."""
    sets = list_shown_sets(task)
    return [each.version_id for each in sets if each.counts and not each.is_sealed]


def _resample_run(pk: UUID) -> bool:
    """Resample a run; return False if another worker was first.

    A run whose files are missing or damaged gets an empty value, and is not tried again.
    """
    run = EvaluationRun.objects.select_related("submission__task", "version").get(pk=pk)
    # Another worker may have processed it since the ids were read.
    if run.resamples.filter(EXAMPLE_METRICS_CONDITION).exists():
        return False
    try:
        values = dict(_iter_values(run))
    # Files may be missing or damaged, and trying again would not help.
    except (FileNotFoundError, ValueError, KeyError, EvaluationRun.DoesNotExist):
        logger.exception("%s cannot be resampled", run)
        values = {}
    # An empty value marks a run that has nothing to resample as done.
    main = run.submission.task.config.metrics.main
    store_resamples(run=run, values=values or {main: b""})
    return True


def find_unresampled_outcomes(task: Task) -> list[int]:
    """Return the ids of outcomes of the owners' approved metrics that are not resampled yet.

    Only outcomes on counting sets are returned, without failed ones.
    """
    metrics = task.custom_metrics.filter(review=CustomMetric.Review.APPROVED)
    if not metrics:
        return []
    versions = _list_exact_versions(task)
    outcomes: list[int] = []
    for metric in metrics:
        # A metric that failed has no numbers to resample.
        rows = metric.outcomes.filter(failure="", run__version__in=versions)
        rows = rows.exclude(run__resamples__metric=metric.key)
        outcomes += rows.values_list("pk", flat=True)
    return outcomes


def _resample_outcome(pk: int) -> bool:
    """Resample the per-example numbers of an owners' metric; always return True.

    Uses the same draws as the other metrics.
    """
    outcome = CustomOutcome.objects.select_related("metric__task", "run__version").get(pk=pk)
    run, numbers = outcome.run, np.frombuffer(outcome.values, dtype="<f4")
    # The same draws as for other metrics, so that models can be compared in pairs.
    statistics = ((place, (number,)) for place, number in enumerate(numbers.tolist()))
    (sums,) = sum_resamples(statistics, [compute_statistic_powers], run.version.sha256)
    values = divide(sums[:, 1], sums[:, 0])
    metric = outcome.metric.key
    store_resamples(run=run, values={metric: np.asarray(values, dtype="<f4").tobytes()})
    return True


def _iter_values(run: EvaluationRun) -> Iterator[tuple[str, bytes]]:
    """Yield each metric with the bytes of its resampled values."""
    resample = resample_plain if run.suite == Suite.PLAIN else resample_suite
    for metric, values in resample(run).items():
        yield metric, np.asarray(values, dtype="<f4").tobytes()


def ask_arena_judge(judge_id: int) -> None:
    """Ask a judge about an arena's battles, each twice with the sides swapped."""
    do_claimed_job(claim_job(ArenaJudge, judge_id), run_arena_judge)
