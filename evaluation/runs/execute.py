"""One evaluation run from its claim to its end, in the order in which it happens."""

import gzip
import logging
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils.translation import gettext_noop

from evaluation.contract import Answer, Evaluated, Number, Outcome
from evaluation.inference.evaluate import (
    Attempt,
    Question,
    evaluate,
    evaluate_suite,
    read_predictions,
    score_file,
)
from evaluation.models import EvaluationRun, Score, Submission
from evaluation.models.runs import predictions_path
from evaluation.queue import leases
from evaluation.queue.attempt_keys import TEMPORARY
from evaluation.runs.model_source import CannotFetch, machine_limits, model_of
from evaluation.runs.scheduling import overdue
from evaluation.runs.selectors import counting
from evaluation.sandbox.choose import NO_ENGINE, NoEngine, has_engine
from evaluation.sandbox.images import ImageRefused
from evaluation.scoring.metrics import METRICS
from evaluation.sets.selectors import set_rows
from evaluation.sets.shown_scores import may_show
from tasks.targets.endpoints.base import EndpointError

logger = logging.getLogger(__name__)
Suite = EvaluationRun.Suite


class NoPlainRun(Exception):
    """There is nothing to compare a perturbed run with; the message says why."""


def execute(run: EvaluationRun) -> None:
    """Evaluate a claimed run and store how it ended. Raises LeaseLost; then nothing was stored."""
    heartbeat = leases.Heartbeat(run)
    try:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY) as folder:
            found = evaluated(run, Path(folder), heartbeat)
            heartbeat.patiently(lambda: store(run, found))
    except leases.LeaseLost:
        raise
    except Exception as error:
        stopped = error
        heartbeat.patiently(lambda: _store_failure(run, stopped))


def evaluated(run: EvaluationRun, folder: Path, heartbeat: leases.Heartbeat) -> Evaluated:
    """Fetch the model, ask it and score its answers; nothing is stored.

    Raises NoEngine, NoPlainRun, CannotFetch, EndpointError, ImageRefused, Overdue and LeaseLost.
    """
    submission, rows = run.submission, partial(set_rows, run.version)
    question = Question(submission.task.config, rows, run.seed, settings.SP_BLEU_MODEL)
    if submission.kind == Submission.Kind.PREDICTIONS:
        with submission.file.open("rb") as file, gzip.open(file) as lines:
            return score_file(question, lines, heartbeat.tell, folder)
    plain = None if run.suite == Suite.PLAIN else _plain_run(run)
    fetching = partial(heartbeat.tell, 0, gettext_noop("fetching the model"))
    with model_of(submission, run, fetching) as (model, runner):
        attempt = Attempt(model, runner, machine_limits(), heartbeat.tell, folder)
        if plain is None:
            found = evaluate(question, attempt)
        else:
            found = evaluate_suite(question, run.suite, partial(_answers, plain), attempt)
    has_died = found.ending.outcome == Outcome.INFRASTRUCTURE and runner.name.startswith("docker")
    if has_died and not has_engine():
        raise NoEngine(NO_ENGINE)
    return found


def _plain_run(run: EvaluationRun) -> EvaluationRun:
    """The plain run that a perturbed one is compared with. Raises NoPlainRun."""
    same = EvaluationRun.objects.filter(
        submission=run.submission, version=run.version, suite=Suite.PLAIN
    )
    found = counting(same).first()
    if found is None:
        raise NoPlainRun(
            gettext_noop(
                "The model has no result on the set as it is, with which this one would be "
                "compared. Repeat that evaluation first, then this one."
            )
        )
    return found


def _answers(run: EvaluationRun) -> Iterator[Answer | None]:
    """The answers of a model in a run, in the order of the set."""
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        yield from read_predictions(lines)


def store(run: EvaluationRun, found: Evaluated) -> None:
    """Store how a run ended, with its scores, in one transaction; the lease decides.

    Lock: of `may_show`. Raises LeaseLost; then nothing was stored.
    """
    ending = found.ending
    if ending.outcome == Outcome.INFRASTRUCTURE:
        leases.try_again(run, ending.sentence)
        return
    notes = [f"{number.metric}: {number.note}" for number in found.numbers if number.note]
    told = {
        "outcome": ending.outcome,
        "runner": found.runner,
        "limit": ending.limit[:100],
        "measured": ending.measured[:100],
        "warnings": [*ending.warnings, *dict.fromkeys(notes)],
        "log": ending.log,
        "usage": asdict(ending.usage),
    }
    if found.predictions is None:
        leases.fail(run, ending.sentence, **told)
        return
    kept = predictions_path(run, "")
    if not default_storage.exists(kept):  # the database may have been away at an earlier try
        with found.predictions.open("rb") as file:
            kept = default_storage.save(kept, File(file))
    try:
        with transaction.atomic():
            leases.finish(run, predictions=kept, is_shown=may_show(run), **told)
            scores = [_score(run, number) for number in found.numbers]
            Score.objects.bulk_create(scores, batch_size=500)
    except leases.LeaseLost:
        if not EvaluationRun.objects.filter(pk=run.pk, predictions=kept).exists():
            default_storage.delete(kept)  # else the earlier try had been stored after all
        raise


def _score(run: EvaluationRun, number: Number) -> Score:
    known = METRICS.get(number.metric)
    columns = {name: value for name, value in asdict(number).items() if name != "note"}
    return Score(run=run, metric_version=known.version if known else 1, **columns)


def _store_failure(run: EvaluationRun, error: Exception) -> None:
    """Queue a run again, or end it, by the error that stopped its evaluation."""
    match error:
        case NoEngine():
            leases.wait(run, str(error))
        case NoPlainRun():
            leases.fail(run, str(error), outcome=Outcome.INFRASTRUCTURE)
        case leases.Overdue():
            leases.fail(run, **overdue())
        case CannotFetch() | EndpointError() | ImageRefused():
            leases.try_again(run, str(error))
        case _:
            logger.error("%s", run, exc_info=error)
            told = f"The platform failed ({type(error).__name__}). The worker's log says more."
            leases.try_again(run, told)
