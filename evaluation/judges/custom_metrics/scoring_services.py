"""Run the job of a custom metric: its trial, and the scores of stored answers. Loads numpy."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from django.db import transaction

from core.files.storage.disk import open_scratch_folder
from evaluation.contract import BeatCallback, Runnable
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.judges.custom_metrics.running import (
    MAX_EXAMPLES,
    AnswerToScore,
    MetricFailed,
    MetricScores,
    score_answers,
)
from evaluation.judges.custom_metrics.selectors import (
    choose_trial_answers,
    find_unscored_runs,
    read_answers_to_score,
)
from evaluation.models import CustomMetric, CustomOutcome, EvaluationRun, Score
from evaluation.runs.carriers import choose_sandbox
from evaluation.scoring.bootstrap import compute_mean_number

logger = logging.getLogger(__name__)
Review = CustomMetric.Review
MAX_SHOWN_ANSWERS = 20
"""The maximum number of answers of a trial that are shown with their numbers."""


@dataclass(frozen=True)
class Trial:
    """The result of a trial run of a custom metric.

    failure: a key of `running.FAILURE_MESSAGES`, or empty; `line` and `detail` say where and why.
    shown: answers with their numbers, empty if people may not read them.
    """

    examples: int
    failure: str = ""
    line: int | None = None
    detail: str = ""
    seconds: float | None = None
    mean: float | None = None
    shown: list[dict[str, Any]] = field(default_factory=list)


def run_metric(metric: CustomMetric) -> None:
    """Run the trial of a claimed version, or score the runs it has not scored. Raises LeaseLost."""
    do_job_work(metric, _try_or_score)


def _try_or_score(metric: CustomMetric, heartbeat: Heartbeat) -> None:
    results: dict[str, Any] = {}
    if metric.review == Review.PROPOSED:
        results["trial"] = asdict(_run_trial(metric, heartbeat.beat))
    elif metric.review == Review.APPROVED:
        for run in find_unscored_runs(metric):
            _score_run(metric, run, heartbeat.beat)
    heartbeat.call_patiently(lambda: leases.finish_job(metric, **results))


def _run_trial(metric: CustomMetric, beat: BeatCallback) -> Trial:
    rows, are_answers_public = choose_trial_answers(metric.task)
    try:
        values, seconds = _run_in_sandbox(metric, rows, beat)
    except MetricFailed as error:
        # A file may copy what it has read into its error, so errors about secrets stay secret.
        return Trial(
            len(rows), error.reason, error.line, error.detail if are_answers_public else ""
        )
    scored_answers = []
    if are_answers_public:
        for row, value in zip(rows[:MAX_SHOWN_ANSWERS], values, strict=False):
            scored_answers.append({**row._asdict(), "value": value})
    mean = float(np.mean(values))
    return Trial(len(rows), seconds=seconds, mean=mean, shown=scored_answers)


def _run_in_sandbox(
    metric: CustomMetric, rows: Sequence[AnswerToScore], beat: BeatCallback
) -> MetricScores:
    def make_runner(model: Runnable) -> Runner:
        return choose_sandbox(model, metric, MAX_EXAMPLES)

    with open_scratch_folder() as folder:
        return score_answers(metric.source, rows, folder, make_runner, beat)


def _score_run(metric: CustomMetric, run: EvaluationRun, beat: BeatCallback) -> None:
    """Score a run, and store the number with its interval, or the reason why there is none.

    Everything is stored in one transaction. A file's error messages are not stored, because the
    file has read the correct answers. Takes no lock: `custom_outcome_once` prevents duplicates.
    """
    beat()
    try:
        values, seconds = _compute_run_scores(metric, run, beat)
    except MetricFailed as error:
        outcome = {"failure": error.reason, "line": error.line}
        CustomOutcome.objects.get_or_create(metric=metric, run=run, defaults=outcome)
        return
    number = compute_mean_number(values, name=metric.key)
    # `<f4`: a fixed byte order, so that the bytes mean the same on every machine.
    outcome_columns = {"seconds": seconds, "values": np.asarray(values, dtype="<f4").tobytes()}
    with transaction.atomic():
        _, is_new = CustomOutcome.objects.get_or_create(
            metric=metric, run=run, defaults=outcome_columns
        )
        if is_new:  # another worker may have been faster; then its score stays
            Score.objects.create(
                run=run,
                metric=metric.key,
                metric_version=metric.number,
                value=number.value,
                low=number.low,
                high=number.high,
                n=number.n,
            )


def _compute_run_scores(
    metric: CustomMetric, run: EvaluationRun, beat: BeatCallback
) -> MetricScores:
    """Return a number for each answer of a run. Raises MetricFailed.

    A missing answer gets the worst number and is not passed to the metric's file.
    """
    if run.version.size > MAX_EXAMPLES:
        raise MetricFailed("too_many")
    try:
        rows = list(read_answers_to_score(run))
    except (OSError, EOFError, ValueError, KeyError):
        logger.exception("%s cannot be scored", run)
        raise MetricFailed("gone") from None
    answered_rows = [row for row in rows if row.answer is not None]
    metric_scores = MetricScores([], 0.0)
    if answered_rows:
        metric_scores = _run_in_sandbox(metric, answered_rows, beat)
    next_values = iter(metric_scores.values)
    worst_value = 0.0 if metric.higher_is_better else 1.0
    values = [worst_value if row.answer is None else next(next_values) for row in rows]
    return MetricScores(values, metric_scores.seconds)
