"""The job of a custom metric: its trial, and the scores of stored answers. It loads numpy."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from django.db import transaction

from core.files.storage.disk import scratch
from evaluation.contract import Beat, Runnable
from evaluation.isolation.queue import leases
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.judges.custom_metrics.running import (
    MOST_EXAMPLES,
    Asked,
    Failed,
    NotNow,
    Scored,
    scored,
)
from evaluation.judges.custom_metrics.selectors import answers_of, runs_to_score, tried_on
from evaluation.models import CustomMetric, CustomOutcome, EvaluationRun, Score
from evaluation.runs.elsewhere import sandbox_for
from evaluation.scoring.bootstrap import mean_of

logger = logging.getLogger(__name__)
Review = CustomMetric.Review
SHOWN = 20
"""Answers of a trial that are shown with their numbers."""


@dataclass(frozen=True)
class Trial:
    """What a trial found. failure: of `running.FAILURES`, empty: none; line and detail tell more.

    shown: answers with their numbers, where people may read them.
    """

    examples: int
    failure: str = ""
    line: int | None = None
    detail: str = ""
    seconds: float | None = None
    mean: float | None = None
    shown: list[dict[str, Any]] = field(default_factory=list)


def work(metric: CustomMetric) -> None:
    """Try a claimed version, or score what it has not scored. Raises LeaseLost."""
    heartbeat = leases.Heartbeat(metric)
    try:
        if metric.review == Review.PROPOSED:
            leases.finish_job(metric, trial=asdict(_trial(metric, heartbeat.beat)))
            return
        if metric.review == Review.APPROVED:
            for run in runs_to_score(metric):
                _score(metric, run, heartbeat.beat)
        leases.finish_job(metric)
    except leases.LeaseLost:
        raise
    except (NotNow, NoEngine) as why:
        leases.wait(metric, str(why))
    except Exception as error:
        logger.exception("%s", metric)
        leases.try_again(metric, f"The platform failed ({type(error).__name__}).")


def _trial(metric: CustomMetric, beat: Beat) -> Trial:
    rows, is_shown = tried_on(metric.task)
    try:
        values, seconds = _in_sandbox(metric, rows, beat)
    except Failed as error:
        return Trial(len(rows), error.reason, error.line, error.detail if is_shown else "")
    shown = [
        {**row._asdict(), "value": value}
        for row, value in zip(rows[: SHOWN * is_shown], values, strict=False)
    ]
    return Trial(len(rows), seconds=seconds, mean=float(np.mean(values)), shown=shown)


def _in_sandbox(metric: CustomMetric, rows: Sequence[Asked], beat: Beat) -> Scored:
    def make_runner(model: Runnable) -> Runner:
        return sandbox_for(model, metric, MOST_EXAMPLES)

    with scratch() as folder:
        return scored(metric.source, rows, folder, make_runner, beat)


def _score(metric: CustomMetric, run: EvaluationRun, beat: Beat) -> None:
    """Store a number of a run with its interval, or why there is none: the whole of it or nothing.

    No lock: `custom_outcome_once` holds. What a file says of its errors is not kept: it has read
    right answers.
    """
    beat()
    try:
        values, seconds = _values(metric, run, beat)
    except Failed as error:
        outcome = {"failure": error.reason, "line": error.line}
        CustomOutcome.objects.get_or_create(metric=metric, run=run, defaults=outcome)
        return
    number = mean_of(values, name=metric.key)
    kept = {"seconds": seconds, "values": np.asarray(values, dtype="<f4").tobytes()}
    with transaction.atomic():
        _, is_new = CustomOutcome.objects.get_or_create(metric=metric, run=run, defaults=kept)
        if is_new:
            Score.objects.create(
                run=run,
                metric=metric.key,
                metric_version=metric.number,
                value=number.value,
                low=number.low,
                high=number.high,
                n=number.n,
            )


def _values(metric: CustomMetric, run: EvaluationRun, beat: Beat) -> Scored:
    """A number of each answer; a missing one is the worst, and the file is not asked about it."""
    if run.version.size > MOST_EXAMPLES:
        raise Failed("too_many")
    try:
        rows = [*answers_of(run)]
    except (OSError, EOFError, ValueError, KeyError):
        logger.exception("%s cannot be scored", run)
        raise Failed("gone") from None
    given = [row for row in rows if row.answer is not None]
    found = _in_sandbox(metric, given, beat) if given else Scored([], 0.0)
    left = iter(found.values)
    worst = 0.0 if metric.higher_is_better else 1.0
    return Scored([worst if row.answer is None else next(left) for row in rows], found.seconds)
