"""One evaluation run from its claim to its end, in the order in which it happens."""

import gzip
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils.translation import gettext_noop

from core.errors import Unavailable
from core.files.storage.disk import scratch
from evaluation.contract import (
    Answer,
    Beat,
    Evaluated,
    Number,
    Outcome,
    Runnable,
)
from evaluation.heartbeat import CHUNK, BeatingFile
from evaluation.isolation.inference.evaluate import (
    Attempt,
    Question,
    evaluate,
    evaluate_suite,
    read_predictions,
    score_file,
)
from evaluation.isolation.inference.exchange import Tell
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.attempt_keys import TEMPORARY
from evaluation.isolation.sandbox import images
from evaluation.isolation.sandbox.choose import NO_ENGINE, NoEngine, has_engine
from evaluation.isolation.sandbox.endpoint import EndpointRunner
from evaluation.isolation.sandbox.limits import CHAT_CALLS, Limits
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.isolation.sandbox.writing import WritingRunner
from evaluation.models import (
    EvaluationRun,
    EvaluationSet,
    Score,
    Submission,
)
from evaluation.models.runs import predictions_path
from evaluation.runs.chat.asking import NOWHERE, meter_of
from evaluation.runs.elsewhere import has_cluster, sandbox_for
from evaluation.runs.endpoints import (
    CannotFetch,
    asked_with,
    endpoint_for,
    writing_of,
)
from evaluation.runs.folders import equipped, kept_folder
from evaluation.runs.handed import handed_of, note_compared, score_handed
from evaluation.runs.selectors import counting, is_remote, is_served_here
from evaluation.runs.services import overdue
from evaluation.scoring.exchanged import exchanged_warnings
from evaluation.scoring.metrics import METRICS
from evaluation.sets.seen_in_training import count_seen, seen_warning
from evaluation.sets.selectors import checked_of, set_rows
from evaluation.sets.services import note_exposed
from evaluation.sets.shown_scores import may_show
from evaluation.task_shape import runnable
from serving.errors import MisconfiguredError
from serving.hub import HubAwayError
from serving.spec import find_weights
from tasks.contexts.media.selectors import for_models
from tasks.models import TargetModel
from tasks.targets.connect import spec_of
from tasks.targets.endpoints.base import EndpointError

logger = logging.getLogger(__name__)
NO_RESULT_YET = gettext_noop(
    "The model has no result on the set as it is, with which this one would be compared. Repeat "
    "that evaluation: this one then runs again, too."
)
NO_RESULT = gettext_noop(
    "Not run: the model's evaluation on the set as it is gave no scores, and this one would be "
    "compared with them."
)
Kind, Suite = Submission.Kind, EvaluationRun.Suite


class NoConsent(Exception):
    """The set's inputs may not leave any more; the message says so."""


class NoPlainRun(Exception):
    """There is nothing to compare a perturbed run with; the message says why.

    outcome: of the plain run, which is the perturbed one's too.
    """

    def __init__(self, message: str, outcome: str) -> None:
        super().__init__(message)
        self.outcome = outcome


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

    Raises NoEngine, NoPlainRun, NoConsent, CannotFetch, EndpointError, ImageRefused, Overdue and
    LeaseLost.
    """
    submission, rows = run.submission, partial(set_rows, run.version)
    task, config = submission.task, submission.task.config
    read = partial(for_models, config, task)
    question = Question(
        config, rows, run.seed, settings.SP_BLEU_MODEL, read=read, checked=checked_of(run.version)
    )
    if submission.kind == Kind.PREDICTIONS:
        with submission.file.open("rb") as file, gzip.open(file) as lines:
            return score_file(question, lines, heartbeat.tell, folder)
    fetching = partial(heartbeat.tell, 0, gettext_noop("fetching the model"))
    if handed := handed_of(run):
        tell, site = heartbeat.tell, partial(model_of, submission, run, fetching)
        return score_handed(handed, question, tell, folder, partial(_attempt, site, tell, folder))
    plain = None if run.suite == Suite.PLAIN else _plain_run(run)
    if is_remote(submission):
        _check_consent(run)
        note_exposed(run.version)
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


@contextmanager
def _attempt(
    model_of: Callable[[], AbstractContextManager[tuple[Runnable, Runner]]],
    tell: Tell,
    folder: Path,
) -> Iterator[Attempt]:
    with model_of() as (model, runner):
        yield Attempt(model, runner, machine_limits(), tell, folder)


def _check_consent(run: EvaluationRun) -> None:
    """Raise NoConsent if the owners have withdrawn the consent to send the inputs elsewhere.

    They may do so while the run waits.
    """
    if not EvaluationSet.objects.filter(versions=run.version, may_leave=True).exists():
        raise NoConsent(
            gettext_noop("The set's inputs may not leave this site any more, so nobody was asked.")
        )


def _plain_run(run: EvaluationRun) -> EvaluationRun:
    """Return the plain run with which a perturbed one is compared. Raises NoPlainRun."""
    same = EvaluationRun.objects.filter(
        submission=run.submission, version=run.version, suite=Suite.PLAIN
    )
    found = counting(same).first()
    if found is not None:
        return found
    last = same.order_by("-number").first()
    if last is None or last.may_repeat:
        outcome = last.outcome if last else Outcome.INFRASTRUCTURE
        raise NoPlainRun(NO_RESULT_YET, outcome)
    raise NoPlainRun(NO_RESULT, last.outcome)


def _answers(run: EvaluationRun) -> Iterator[Answer | None]:
    """Yield the answers of a model in a run, in the order of the set."""
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        yield from read_predictions(lines)


def machine_limits() -> Limits:
    """Return what a model may use on a whole set, by this installation's settings."""
    return Limits.of_machine(
        settings.EVALUATION_MEMORY_GIB, settings.EVALUATION_CPUS, settings.EVALUATION_SECONDS
    )


@contextmanager
def model_of(
    submission: Submission, job: EvaluationRun | Submission, beat: Beat
) -> Iterator[tuple[Runnable, Runner]]:
    """Provide the model of a submission and its runner; both exist only inside the block.

    job: the claimed run or check that needs them. Predictions need no runner.
    Raises CannotFetch, EndpointError, ImageRefused, NoEngine and what `beat` raises.
    """
    if is_remote(submission) or is_served_here(submission):
        yield runnable(submission.task.config), remote_runner(submission)
        return
    with fetched(submission, beat, is_elsewhere=has_cluster()) as model:
        yield model, local_runner(submission, model, job)


def local_runner(
    submission: Submission, model: Runnable, job: EvaluationRun | Submission
) -> Runner:
    """Return what runs a model on this machine or on the site's cluster.

    Raises NoEngine and CannotFetch.
    """
    runner = sandbox_for(model, job)
    if submission.kind == Kind.LLM:
        return WritingRunner(runner, asked_with(submission, NOWHERE))
    return runner


@contextmanager
def fetched(
    submission: Submission, beat: Beat, *, is_elsewhere: bool = False
) -> Iterator[Runnable]:
    """Provide the model of a submission that is not remote; it exists only inside the block.

    Raises CannotFetch, NoEngine, ImageRefused and what `beat` raises.
    """
    config = submission.task.config
    if submission.kind == Kind.IMAGE:
        image = runnable(config, image=_image(submission, beat), adapter=submission.adapter)
        with equipped(submission, image, beat, is_elsewhere=is_elsewhere) as model:
            yield model
    elif submission.target:
        model = runnable(config, folder=_target_folder(submission.target))
        with equipped(submission, model, beat, is_elsewhere=is_elsewhere) as whole:
            yield whole
    else:
        with kept_folder(submission, beat) as folder:
            model = runnable(config, folder=folder, writing=writing_of(submission))
            with equipped(submission, model, beat, is_elsewhere=is_elsewhere) as whole:
                yield whole


def remote_runner(submission: Submission) -> Runner:
    """Return what asks a remote model, or one on our model server.

    Raises EndpointError(misconfigured) and CannotFetch.
    """
    if submission.kind == Kind.CHAT:
        return EndpointRunner(endpoint_for(submission), CHAT_CALLS, meter_of(submission))
    if is_served_here(submission):
        return EndpointRunner(endpoint_for(submission), CHAT_CALLS)
    return EndpointRunner(endpoint_for(submission))


def _target_folder(target: TargetModel) -> Path:
    """Return the folder of a target's files, where the model server finds them too."""
    try:
        return find_weights(spec_of(target))[0]
    except MisconfiguredError as error:
        raise CannotFetch(str(error)) from None


def _image(submission: Submission, beat: Beat) -> str:
    """Return the image's id once the engine has exactly the image that was checked.

    A name may point to another image by now; the id cannot.
    """
    if images.has_image(submission.digest):
        return submission.digest
    if submission.file:
        with scratch() as folder:
            archive = folder / "image.tar"
            with submission.file.open("rb") as stored, archive.open("wb") as copy:
                shutil.copyfileobj(BeatingFile(stored, beat), copy, CHUNK)
            found = images.load_image(archive)
    else:
        found = images.pull_image(submission.source, settings.SUBMISSION_PRIVATE_HOSTS, beat)
    if found != submission.digest:
        raise CannotFetch(
            f"The image is {found} now, but {submission.digest} was checked. Submit it again."
        )
    return found


def store(run: EvaluationRun, found: Evaluated) -> None:
    """Store how a run ended, with its scores, in one transaction; the lease decides.

    Lock: that of `may_show`. Raises LeaseLost; then nothing was stored.
    """
    ending = found.ending
    if ending.outcome == Outcome.INFRASTRUCTURE:
        leases.try_again(run, ending.sentence)
        return
    if ending.outcome == Outcome.AWAY:
        leases.wait_for_others(run, ending.sentence, has_answered=ending.usage.answers > 0)
        return
    notes = [f"{number.metric}: {number.note}" for number in found.numbers if number.note]
    warnings = [*ending.warnings, *dict.fromkeys(notes)]
    results = {
        "outcome": ending.outcome,
        "runner": found.runner,
        "limit": ending.limit[:100],
        "measured": ending.measured[:100],
        "warnings": warnings,
        "log": ending.log,
        "usage": asdict(ending.usage),
    }
    if found.predictions is None:
        leases.fail(run, ending.sentence, **results)
        note_compared(run, found)
        return
    seen = count_seen(run)
    kept = predictions_path(run, "")
    if not default_storage.exists(kept):  # the database may have been away at an earlier try
        with found.predictions.open("rb") as file:
            kept = default_storage.save(kept, File(file))
    try:
        with transaction.atomic():
            is_shown = may_show(run)
            warnings += seen_warning(run, seen, is_shown=is_shown)
            if _may_tell_exchanged(run):
                warnings += exchanged_warnings(found.exchanged)
            leases.finish(run, predictions=kept, is_shown=is_shown, seen=seen, **results)
            scores = [_score(run, number) for number in found.numbers]
            Score.objects.bulk_create(scores, batch_size=500)
            note_compared(run, found)
    except leases.LeaseLost:
        if not EvaluationRun.objects.filter(pk=run.pk, predictions=kept).exists():
            default_storage.delete(kept)  # else the earlier try had been stored after all
        raise


def _may_tell_exchanged(run: EvaluationRun) -> bool:
    """Return whether the submitter may learn that labels look exchanged.

    This reveals a little more than the scores do. So it is limited to sets whose correct answers
    are public, and left out of sets that owners hide. Examples written to fool a target always make
    its labels look exchanged.
    """
    version = run.version
    is_hidden = version.evaluation_set.access == EvaluationSet.Access.HIDDEN
    return not (version.is_sealed or is_hidden or run.in_the_loop)


def _score(run: EvaluationRun, number: Number) -> Score:
    known, language = METRICS.get(number.metric), run.submission.task.config.language
    columns = {name: value for name, value in asdict(number).items() if name != "note"}
    return Score(run=run, metric_version=known.version_for(language) if known else 1, **columns)


def _store_failure(run: EvaluationRun, error: Exception) -> None:
    """Queue a run again, or end it, depending on the error that stopped its evaluation."""
    match error:
        case NoEngine() | Unavailable():
            leases.wait(run, str(error))
        case HubAwayError() | images.RegistryAway():
            leases.wait_for_others(run, str(error))
        case NoPlainRun():
            leases.fail(run, str(error), outcome=error.outcome)
        case NoConsent():
            leases.fail(run, str(error), outcome=Outcome.INFRASTRUCTURE)
        case leases.Overdue():
            leases.fail(run, **overdue())
        case CannotFetch() | EndpointError() | images.ImageRefused():
            leases.try_again(run, str(error))
        case _:
            logger.error("%s", run, exc_info=error)
            message = f"The platform failed ({type(error).__name__}). The worker's log says more."
            leases.try_again(run, message)
