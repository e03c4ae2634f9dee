"""Execute one evaluation run, from its claim to its end."""

import gzip
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils.translation import gettext_noop

from evaluation.contract import (
    Answer,
    AttemptFailed,
    EvaluationResult,
    ImpossibleJob,
    Number,
    Outcome,
    ServerAway,
)
from evaluation.isolation.inference.evaluate import (
    Attempt,
    Question,
    evaluate_set,
    evaluate_suite,
    read_predictions,
    score_file,
)
from evaluation.isolation.inference.exchange import ProgressCallback
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.attempt_keys import TEMPORARY_PREFIX
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.isolation.sandbox import images
from evaluation.isolation.sandbox.choose import NO_ENGINE_MESSAGE, NoEngine, has_engine
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.kinds import KINDS
from evaluation.models import EvaluationRun, EvaluationSet, Score, Submission
from evaluation.models.runs import predictions_path
from evaluation.runs.handed import find_handed_answers, score_handed_answers, store_agreement
from evaluation.runs.runners import get_machine_limits, open_model
from evaluation.runs.selectors import filter_counting_runs, is_remote
from evaluation.runs.services import make_overdue_columns
from evaluation.scoring.exchanged import make_exchanged_warnings
from evaluation.scoring.metrics import METRICS
from evaluation.test_sets.seen_in_training import count_seen_examples, make_seen_warnings
from evaluation.test_sets.selectors import read_checked_paraphrases, read_set_rows
from evaluation.test_sets.services import record_exposure
from evaluation.test_sets.shown_scores import decide_if_shown
from tasks.contexts.media.selectors import prepare_for_models
from tasks.targets.endpoints.base import EndpointError

NO_RESULT_YET_MESSAGE = gettext_noop(
    "This evaluation needs the model's result on the unchanged set. Repeat that "
    "evaluation, and this one will run again too."
)
NO_RESULT_MESSAGE = gettext_noop(
    "Not run, because the model has no scores on the unchanged set to compare with."
)
Suite = EvaluationRun.Suite


def execute_run(run: EvaluationRun) -> None:
    """Evaluate a claimed run and store its outcome. Raises LeaseLost; then nothing was stored."""
    do_job_work(run, _evaluate_and_store)


def _evaluate_and_store(run: EvaluationRun, heartbeat: Heartbeat) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX) as folder:
            evaluation = evaluate_run(run, Path(folder), heartbeat.report_progress)
            heartbeat.call_patiently(lambda: store_outcome(run, evaluation))
    except leases.JobOverdue:  # the deadline passed during work; `end_overdue_runs` ends the others
        columns = make_overdue_columns()
        raise ImpossibleJob(columns.pop("error"), **columns) from None
    except (EndpointError, images.ImageRefused) as error:
        raise AttemptFailed(str(error)) from error


def evaluate_run(
    run: EvaluationRun, folder: Path, report_progress: ProgressCallback
) -> EvaluationResult:
    """Return the scored answers of the run's model, without storing anything.

    Answers come from the submitted file, from the owner's own machine, or from calling the model.

    Raises WorkStopped, EndpointError, ImageRefused, JobOverdue and LeaseLost.
    """
    question = _make_question(run)
    if KINDS[run.submission.kind].is_file_of_answers:
        return _score_predictions_file(run.submission, question, folder, report_progress)
    if handed_answers := find_handed_answers(run):
        return score_handed_answers(
            handed_answers,
            question,
            report_progress,
            folder,
            open_second_attempt=lambda: _open_attempt(run, folder, report_progress),
        )
    return _ask_model(run, question, folder, report_progress)


def _make_question(run: EvaluationRun) -> Question:
    """Return the run's inputs and the rules for scoring the answers to them."""
    task, version = run.submission.task, run.version
    return Question(
        task.config,
        rows=partial(read_set_rows, version),
        seed=run.seed,
        sp_model=settings.SP_BLEU_MODEL,
        prepare_inputs=partial(prepare_for_models, task.config, task),
        checked_paraphrases=read_checked_paraphrases(version),
    )


def _score_predictions_file(
    submission: Submission, question: Question, folder: Path, report_progress: ProgressCallback
) -> EvaluationResult:
    with submission.file.open("rb") as file, gzip.open(file) as lines:
        return score_file(question, lines, report_progress, folder)


def _ask_model(
    run: EvaluationRun, question: Question, folder: Path, report_progress: ProgressCallback
) -> EvaluationResult:
    """Ask the model about the set, or about its perturbed variants, and score the answers."""
    # Looked up first: without a plain run there is nothing to compare with.
    plain_run = None
    if run.suite != Suite.PLAIN:
        plain_run = _find_plain_run(run)
    if is_remote(run.submission):
        _check_consent(run)
        # Before the first example leaves: a worker may die between the two.
        record_exposure(run.version)
    with _open_attempt(run, folder, report_progress) as attempt:
        if plain_run is None:
            evaluation = evaluate_set(question, attempt)
        else:
            plain_answers = partial(_read_answers, plain_run)
            evaluation = evaluate_suite(question, run.suite, plain_answers, attempt)
    _check_engine(evaluation, attempt.runner)
    return evaluation


def _check_engine(evaluation: EvaluationResult, runner: Runner) -> None:
    """Raise NoEngine if the container engine stopped responding, so that the run waits for it."""
    has_failed = evaluation.ending.outcome == Outcome.INFRASTRUCTURE
    if has_failed and runner.name.startswith("docker") and not has_engine():
        raise NoEngine(NO_ENGINE_MESSAGE)


@contextmanager
def _open_attempt(
    run: EvaluationRun, folder: Path, report_progress: ProgressCallback
) -> Iterator[Attempt]:
    """Provide the run's model with its runner and limits, which exist only inside the block."""
    report_fetching = partial(report_progress, 0, gettext_noop("fetching the model"))
    with open_model(run.submission, run, report_fetching) as (model, runner):
        yield Attempt(model, runner, get_machine_limits(), report_progress, folder)


def _check_consent(run: EvaluationRun) -> None:
    """Raise ImpossibleJob if the owners have withdrawn their consent to send inputs off the site.

    They may withdraw it while the run waits. The run costs no quota and may be repeated if the
    owners consent again.
    """
    if not EvaluationSet.objects.filter(versions=run.version, may_leave=True).exists():
        raise ImpossibleJob(
            gettext_noop("This set's inputs can no longer leave the site, so we sent nothing."),
            outcome=Outcome.INFRASTRUCTURE,
        )


def _find_plain_run(run: EvaluationRun) -> EvaluationRun:
    """Return the plain run with which a perturbed run is compared.

    Raises ImpossibleJob if the plain run failed, with that run's outcome, or if there is none,
    with INFRASTRUCTURE.
    """
    plain_runs = EvaluationRun.objects.filter(
        submission=run.submission, version=run.version, suite=Suite.PLAIN
    )
    counting_run = filter_counting_runs(plain_runs).first()
    if counting_run is not None:
        return counting_run
    last_run = plain_runs.order_by("-number").first()
    if last_run is None:
        raise ImpossibleJob(NO_RESULT_YET_MESSAGE, outcome=Outcome.INFRASTRUCTURE)
    if last_run.may_repeat:
        raise ImpossibleJob(NO_RESULT_YET_MESSAGE, outcome=last_run.outcome)
    raise ImpossibleJob(NO_RESULT_MESSAGE, outcome=last_run.outcome)


def _read_answers(run: EvaluationRun) -> Iterator[Answer | None]:
    """Yield the answers of a model in a run, in the order of the set."""
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        yield from read_predictions(lines)


def store_outcome(run: EvaluationRun, evaluation: EvaluationResult) -> None:
    """Store the outcome of a run and its scores in one transaction, if the lease is still held.

    A failure of the model ends the run. A success stores the predictions, then the scores and the
    end of the run. A failure of the platform or of another server is raised.

    Takes the lock of `decide_if_shown`. Raises LeaseLost, AttemptFailed and ServerAway; then
    nothing was stored.
    """
    ending = evaluation.ending
    if ending.outcome == Outcome.INFRASTRUCTURE:
        raise AttemptFailed(ending.sentence)
    if ending.outcome == Outcome.AWAY:
        raise ServerAway(ending.sentence, has_answered=ending.usage.answers > 0)
    if evaluation.predictions is None:
        leases.fail_job(run, ending.sentence, **_make_columns(evaluation))
        store_agreement(run, evaluation)
    else:
        _store_scores(run, evaluation, evaluation.predictions)


def _make_columns(evaluation: EvaluationResult) -> dict[str, Any]:
    """Return the run's columns that are known whether or not the model succeeded."""
    ending = evaluation.ending
    notes = [f"{number.metric}: {number.note}" for number in evaluation.numbers if number.note]
    distinct_notes = list(dict.fromkeys(notes))
    usage = asdict(ending.usage)
    # In a column of their own, because boards read the usage of thousands of runs.
    measurements = usage.pop("measurements") or {}
    return {
        "outcome": ending.outcome,
        "runner": evaluation.runner,
        "limit": ending.limit[:100],
        "measured": ending.measured[:100],
        "warnings": list(ending.warnings) + distinct_notes,
        "log": ending.log,
        "usage": usage,
        "measurements": measurements,
    }


def _store_scores(run: EvaluationRun, evaluation: EvaluationResult, predictions: Path) -> None:
    """Store predictions and scores, and end the run. Raises LeaseLost."""
    # Both are slow on a large set, so they come before the transaction.
    seen_count = count_seen_examples(run)
    stored_name = predictions_path(run, "")
    if not default_storage.exists(
        stored_name
    ):  # `call_patiently` calls again after a broken database
        with predictions.open("rb") as file:
            stored_name = default_storage.save(stored_name, File(file))
    columns = _make_columns(evaluation)
    try:
        with transaction.atomic():
            # Under its lock, held until the transaction ends, so that of two runs that end at once
            # the second counts the first.
            is_shown = decide_if_shown(run)
            columns["warnings"] += make_seen_warnings(run, seen_count, is_shown=is_shown)
            if _may_warn_of_exchanged_labels(run):
                columns["warnings"] += make_exchanged_warnings(evaluation.exchanged)
            leases.finish_job(
                run, predictions=stored_name, is_shown=is_shown, seen=seen_count, **columns
            )
            scores = [_make_score(run, number) for number in evaluation.numbers]
            Score.objects.bulk_create(scores, batch_size=500)  # slices can make thousands of them
            store_agreement(run, evaluation)
    except leases.LeaseLost:
        # The lease is also lost if an earlier call stored everything before its connection
        # broke. Then a row refers to the file, which has to stay.
        if not EvaluationRun.objects.filter(pk=run.pk, predictions=stored_name).exists():
            default_storage.delete(stored_name)
        raise


def _may_warn_of_exchanged_labels(run: EvaluationRun) -> bool:
    """Return whether the submitter may be warned that labels look swapped.

    The warning reveals a little more than the scores do. It is limited to sets whose correct
    answers are public and that owners do not hide. Examples written to fool a target always make
    its labels look swapped.
    """
    version = run.version
    is_hidden = version.evaluation_set.access == EvaluationSet.Access.HIDDEN
    return not (version.is_sealed or is_hidden or run.in_the_loop)


def _make_score(run: EvaluationRun, number: Number) -> Score:
    """Return the score row for a number; its note becomes one of the run's warnings."""
    columns = asdict(number)
    del columns["note"]
    version = 1
    if metric := METRICS.get(number.metric):
        version = metric.get_version_for(run.submission.task.config.language)
    return Score(run=run, metric_version=version, **columns)
