"""One evaluation run from its claim to its end: what it is run with, its lease, what is stored."""

import gzip
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext_noop

from evaluation.contract import (
    Answer,
    Beat,
    Ending,
    Evaluated,
    Number,
    Outcome,
    Runnable,
    Take,
)
from evaluation.inference.evaluate import (
    Ask,
    Question,
    evaluate,
    evaluate_suite,
    read_predictions,
    score_file,
)
from evaluation.inference.requests import Tell, runnable
from evaluation.models import EvaluationRun, Score, Submission
from evaluation.models.runs import predictions_path
from evaluation.queue import leases
from evaluation.queue.cleanup import TEMPORARY, run_key
from evaluation.runs import services as runs
from evaluation.runs.model_source import (
    CannotFetch,
    endpoint_for,
    machine_limits,
    materialised,
    predictions_file,
)
from evaluation.sandbox.choose import NO_ENGINE, NoEngine, has_engine, runner_for
from evaluation.sandbox.endpoint import EndpointRunner
from evaluation.sandbox.images import ImageRefused
from evaluation.sandbox.monitor import Runner
from evaluation.scoring.metrics import METRICS
from evaluation.sets.selectors import set_rows
from evaluation.sets.shown_scores import may_show
from tasks.targets.endpoints.base import EndpointError

logger = logging.getLogger(__name__)

BEAT_SECONDS = 2.0
LATER = timedelta(minutes=1)  # until what could not be done now is tried again
DATABASE_AWAY = (OperationalError, InterfaceError)
Suite = EvaluationRun.Suite


class Overdue(Exception):
    """The run's deadline has come."""


class NoPlainRun(Exception):
    """There is nothing to compare a perturbed run with; the message says why."""


def carry_out(run: EvaluationRun) -> None:
    """Evaluate a claimed run and store how it ended. Raises LeaseLost; then nothing was stored."""
    try:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY) as folder:
            found = _evaluated(run, Path(folder), Watch(run).tell)
            if found.ending.outcome == Outcome.INFRASTRUCTURE:
                end: Callable[[], None] = partial(_try_again, run, found.ending.sentence)
            else:
                end = partial(finish, run, found)
            patiently(run, end)
            return
    except leases.LeaseLost:
        raise
    except NoEngine as reason:
        end = partial(leases.put_back, run, timezone.now() + LATER, str(reason))
    except NoPlainRun as reason:
        end = partial(leases.fail, run, str(reason), outcome=Outcome.INFRASTRUCTURE)
    except Overdue:
        end = partial(leases.fail, run, **runs.overdue())
    except (CannotFetch, EndpointError, ImageRefused) as reason:
        end = partial(_try_again, run, str(reason))
    except Exception as error:
        logger.exception("%s", run)
        told = f"The platform failed ({type(error).__name__}). The worker's log says more."
        end = partial(_try_again, run, told)
    patiently(run, end)


def _try_again(run: EvaluationRun, why: str) -> None:
    """Queue a run that the platform failed, a few times; then it ends so, and costs no quota."""
    if run.attempts < leases.MAX_ATTEMPTS:
        leases.put_back(run, timezone.now() + run.attempts * LATER, why, counts=True)
    else:
        leases.fail(run, why, outcome=Outcome.INFRASTRUCTURE)


class Watch:
    """Keeps a run's lease while it is worked on."""

    def __init__(self, run: EvaluationRun) -> None:
        self._run, self._next = run, 0.0

    def tell(self, progress: float, message: str) -> None:
        """Call it often; it writes each BEAT_SECONDS. Raises LeaseLost and Overdue.

        While the database is away the run goes on, as long as the lease would have lasted.
        """
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + BEAT_SECONDS
        run = self._run
        if run.deadline_at and timezone.now() > run.deadline_at:
            raise Overdue
        try:
            leases.heartbeat(run, progress, message)
        except DATABASE_AWAY:
            if _has_lost(run):
                raise


def patiently(run: EvaluationRun, write: Callable[[], None]) -> None:
    """Store something; while the database is away, again until the lease would have run out."""
    while True:
        try:
            return write()
        except DATABASE_AWAY:
            if _has_lost(run):
                raise
            time.sleep(1)


def _has_lost(run: EvaluationRun) -> bool:
    """Whether the lease has run out while the database was away; the next query connects anew."""
    connection.close()
    return run.lease_until is None or timezone.now() > run.lease_until


def _evaluated(run: EvaluationRun, folder: Path, tell: Tell) -> Evaluated:
    """Ask the model and score its answers; nothing is stored.

    Raises NoEngine, NoPlainRun, CannotFetch, and what `tell` raises.
    """
    submission, version = run.submission, run.version
    rows = partial(set_rows, version)
    question = Question(submission.task.config, rows, run.seed, settings.SP_BLEU_MODEL)
    if submission.kind == Submission.Kind.PREDICTIONS:
        with predictions_file(submission) as file, gzip.open(file) as lines:
            return score_file(question, lines, tell, folder)
    plain = None if run.suite == Suite.PLAIN else _plain(run)
    with runner_of(run, tell) as (runner, ask):
        if plain is None:
            found = evaluate(question, ask, tell, folder, runner)
        else:
            read = partial(_answers, plain)
            found = evaluate_suite(question, run.suite, read, ask, tell, folder, runner)
    has_died = found.ending.outcome == Outcome.INFRASTRUCTURE and runner.startswith("docker")
    if has_died and not has_engine():
        raise NoEngine(NO_ENGINE)
    return found


def _plain(run: EvaluationRun) -> EvaluationRun:
    """The plain run that a perturbed one is compared with. Raises NoPlainRun."""
    same = EvaluationRun.objects.filter(
        submission=run.submission, version=run.version, suite=Suite.PLAIN
    )
    found = runs.counting(same).first()
    if found is None:
        raise NoPlainRun(
            gettext_noop(
                "The model has no result on the set as it is, with which this one would be "
                "compared. Repeat that evaluation first, then this one."
            )
        )
    return found


def _answers(run: EvaluationRun) -> Iterator[Answer | None]:
    """What a model answered in a run, in the order of the set."""
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        yield from read_predictions(lines)


@contextmanager
def runner_of(run: EvaluationRun, tell: Tell) -> Iterator[tuple[str, Ask]]:
    """The runner's name, and what asks the run's model with it. Raises NoEngine and CannotFetch."""
    submission = run.submission
    if runs.is_remote(submission):
        runner = EndpointRunner(endpoint_for(submission))
        yield asking(runner, runnable(submission.task.config))
    else:
        message = gettext_noop("fetching the model")
        with materialised(submission, lambda: tell(0, message)) as model:
            yield asking(runner_for(model, run_key(run)), model)


def asking(runner: Runner, model: Runnable) -> tuple[str, Ask]:
    def ask(inputs: Path, take: Take, beat: Beat) -> Ending:
        return runner.run(model, inputs, machine_limits(), take=take, beat=beat)

    return runner.name, ask


def finish(run: EvaluationRun, found: Evaluated) -> None:
    """Store how a run ended, with its scores, in one transaction; the lease decides.

    Lock: of `may_show`. Raises LeaseLost; then nothing was stored.
    """
    ending = found.ending
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
            Score.objects.bulk_create(_scores(run, found.numbers), batch_size=500)
    except leases.LeaseLost:
        if not EvaluationRun.objects.filter(pk=run.pk, predictions=kept).exists():
            default_storage.delete(kept)  # else the earlier try had been stored after all
        raise


def _scores(run: EvaluationRun, numbers: Iterable[Number]) -> Iterator[Score]:
    for number in numbers:
        known = METRICS.get(number.metric)
        yield Score(
            run=run,
            metric=number.metric,
            metric_version=known.version if known else 1,
            slice=number.slice,
            kind=number.kind,
            value=number.value,
            low=number.low,
            high=number.high,
            n=number.n,
        )
