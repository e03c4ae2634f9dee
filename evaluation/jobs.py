"""What queue workers call, by the id of a row alone; and the check of a submission in full."""

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.core.files import File
from django.db import transaction
from django.utils.translation import gettext_noop

from annotation.mails import tell_reports
from annotation.tidying import tidy_assignments
from core.accounts.counting import tidy_counted_people
from core.accounts.erasures import write_log
from core.accounts.idempotency import purge_answers
from core.accounts.tidying import is_tidied, note_tidied, tidy_people
from core.data.encryption import decrypt
from core.errors import Unavailable
from core.files.bounded import Bounds, OutOfBounds, bounded
from core.files.storage.disk import scratch
from evaluation.contract import GIB, MIB, Outcome, Runnable
from evaluation.heartbeat import BeatingFile, during
from evaluation.isolation.inference.precheck import (
    FIVE,
    Away,
    NotNow,
    OtherIds,
    Refused,
    answer_five,
    keep_predictions,
)
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.cleanup import tidy
from evaluation.isolation.queue.leases import Heartbeat, LeaseLost, claim, ready, sweep
from evaluation.isolation.queue.subprocess_job import carry_out
from evaluation.isolation.sandbox import images as sandbox_images
from evaluation.isolation.sandbox.choose import NO_ENGINE, NoEngine
from evaluation.isolation.sandbox.engine import engine
from evaluation.isolation.sandbox.logs import redacted
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.isolation.uploads import archives, image_archives
from evaluation.isolation.uploads.adapters import check_adapter, check_whole
from evaluation.isolation.uploads.chunked import (
    UploadRefused,
    assemble,
    bytes_left,
    check_stored,
    discard,
)
from evaluation.isolation.uploads.model_folders import (
    MOST_BYTES,
    check_folder,
    digest_of,
    remove_macos_files,
)
from evaluation.judges.custom_metrics.scoring_services import work
from evaluation.judges.custom_metrics.services import request_custom_scores
from evaluation.judges.llm_judges.services import ask
from evaluation.judges.paraphrases.writing_services import write
from evaluation.models import (
    CustomMetric,
    Dataset,
    Job,
    LlmJudge,
    Paraphrasing,
    PracticeRun,
    Submission,
    TrainedRows,
    TrainingRun,
    Upload,
)
from evaluation.releases.build import make
from evaluation.releases.services import release_held
from evaluation.runs.elsewhere import has_cluster, trainer_for
from evaluation.runs.endpoints import CannotFetch, identity_of, writing_of
from evaluation.runs.execute import execute, local_runner, machine_limits, remote_runner
from evaluation.runs.folders import equipped
from evaluation.runs.handed import discard_handed
from evaluation.runs.hub import fetch_public
from evaluation.runs.model_cache import pack
from evaluation.runs.selectors import is_remote
from evaluation.runs.services import (
    claim_next,
    end_overdue,
    request_missing,
    request_runs,
    ring_suites,
)
from evaluation.sets.seen_in_training import compare_sets
from evaluation.sets.selectors import guess_of, input_rows
from evaluation.sets.services import note_shown
from evaluation.sets.source_services import sweep_rounds
from evaluation.submissions.emails import tell_ends
from evaluation.submissions.near_copy_services import note_near_copies
from evaluation.submissions.practice.serve import serve
from evaluation.submissions.retention_services import empty_old_models
from evaluation.submissions.selectors import shown_inputs
from evaluation.submissions.services import publish_due
from evaluation.submissions.tidying import tidy_submitters
from evaluation.submissions.training_data import digests_of, facts_of, learn, training_rows
from evaluation.task_shape import runnable
from evaluation.training.row_files import read_rows
from serving.errors import MisconfiguredError
from serving.hub import HubAwayError
from serving.spec import ModelSpec
from tasks.contexts.media.services import tidy_media, tidy_orphans
from tasks.members.invitation_services import tidy_invitations
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.failures import tell_failures
from validation.judging.tidying import tidy_leases

logger = logging.getLogger(__name__)
J = TypeVar("J", bound=Job)
Kind = Submission.Kind

MOST_TIDIED = 10_000  # rows at a time
UNPACKING = Bounds(seconds=3600, memory_bytes=512 * MIB)
READING = Bounds(seconds=600, memory_bytes=GIB)
ANSWERS = Bounds(seconds=3600, memory_bytes=4 * GIB)  # ten million, most of it their ids

REFUSALS = (
    Refused,
    OutOfBounds,
    UploadRefused,
    archives.ArchiveRefused,
    sandbox_images.ImageRefused,
    MisconfiguredError,
    CannotFetch,
)
OTHERS_AWAY = (Away, HubAwayError, sandbox_images.RegistryAway)
"""A server that neither the submitter nor this site runs; the message names it."""


def _work(job: J | None, do: Callable[[J], None]) -> J | None:
    """Do a claimed job, if there is one, and return it.

    A worker that lost the lease stops quietly: another one has the job, or it was ended.
    """
    if job is not None:
        try:
            do(job)
        except LeaseLost as lost:
            logger.warning("%s", lost)
    return job


def build_dataset(dataset_id: int) -> None:
    """Make a version of a round's dataset."""
    _work(claim(Dataset, dataset_id), make)


def run_training(run_id: int) -> None:
    """Train a task's next target in a separate process."""
    command = ["train_target", "--run", str(run_id)]
    _work(claim(TrainingRun, run_id), lambda run: carry_out(run, command))


def ask_llm_judge(judge_id: int) -> None:
    """Ask a language model that judges about what people judged and models answered."""
    _work(claim(LlmJudge, judge_id), ask)


def write_paraphrases(job_id: int) -> None:
    """Ask a language model for paraphrases of a set's examples."""
    _work(claim(Paraphrasing, job_id), write)


def serve_practice(run_id: UUID) -> None:
    """Keep a submitted model in the sandbox for who practises with it."""
    _work(
        claim(PracticeRun, run_id, ready_at=None),
        lambda run: serve(run, shown_inputs(run.submission.task)[0]),
    )


def run_custom_metric(metric_id: UUID) -> None:
    """Try a metric of a task's owners, or score stored answers by it."""
    _work(claim(CustomMetric, metric_id), work)


def check_submission(submission_id: UUID) -> None:
    """Check a submission; an accepted one is queued for its evaluations."""
    _work(claim(Submission, submission_id), check)


def evaluate_next(run_id: UUID) -> None:
    """Evaluate the run whose turn it is, which need not be the one that rang.

    A check that waits goes first: it takes seconds, and somebody watches its page. So does one
    training, so that neither trainings nor evaluations wait for all of the others.
    """
    if (submission := _longest_waiting(Submission)) is not None:
        check_submission(submission)
    if (training := _longest_waiting(TrainingRun)) is not None:
        run_training(training)
    if run := _work(claim_next(), execute):
        discard_handed(run)
        ring_suites(run)
        note_near_copies(run)


def _longest_waiting(kind: type[Job]) -> Any:
    """Return the id of the job of this kind that has waited longest; None if none is ready."""
    due = kind._default_manager.filter(ready(kind)).order_by("queued_at")
    return due.values_list("pk", flat=True).first()


def sweep_all() -> int:
    """Bring back what dead workers held, and ring for what waits; returns how many messages.

    After that, sets are made of rounds that are over, and runs are asked for on new sets: these
    ring by themselves, and a queue that is not empty is not rung for what waits.
    """
    end_overdue()
    rung = sweep()
    release_held()
    sweep_rounds()
    compare_sets()
    request_missing()
    request_custom_scores()
    publish_due()
    tell_ends()
    tell_reports()
    tell_failures()
    tidy()
    purge_answers()
    write_log()
    tidy_daily()
    return rung


def tidy_daily() -> int:
    """Delete what is kept no longer, once a day and a bounded number of rows; how many went.

    The rest is left for the next sweep.
    """
    if is_tidied():
        return 0
    deleted = [
        tidy(MOST_TIDIED)
        for tidy in (
            tidy_people,
            tidy_assignments,
            tidy_media,
            tidy_orphans,
            tidy_invitations,
            tidy_leases,
            empty_old_models,
            tidy_submitters,
            tidy_counted_people,
        )
    ]
    if max(deleted) < MOST_TIDIED:
        note_tidied(sum(deleted))
    return sum(deleted)


# The check of what was submitted: unpacked with care, five examples answered, then kept.


@dataclass(frozen=True)
class Arrived:
    """What was submitted, looked through. file: what is kept of it; model: what can be asked.

    warnings: of the check, as examples that have no answer; its owner reads them in the log.
    """

    digest: str
    size: int | None = None
    file: Path | None = None
    model: Runnable | None = None
    warnings: Sequence[str] = ()


def check(submission: Submission) -> None:
    """Check a claimed submission and queue its evaluations, or say what is wrong with it.

    Raises LeaseLost; then nothing was stored.
    """
    watch = Heartbeat(submission)
    try:
        with scratch() as folder:
            watch.begin(0.1, gettext_noop("reading the submission"))
            arrived = RECEIVE[submission.kind](submission, folder, watch)
            if arrived.model:
                there = has_cluster()
                with equipped(submission, arrived.model, watch.beat, is_elsewhere=there) as model:
                    watch.begin(0.5, gettext_noop("answering five examples"))
                    warnings = _answer_five(submission, model, folder, watch)
                    arrived = replace(arrived, warnings=warnings)
            watch.begin(0.9, gettext_noop("storing it"))
            _accept(submission, arrived, watch)
    except leases.LeaseLost:
        raise
    except REFUSALS as refused:
        _refuse(submission, refused)
    except EndpointError as error:
        _refuse(submission, Refused(str(error)))
    except (NotNow, NoEngine, Unavailable) as reason:
        leases.wait(submission, str(reason))
    except OTHERS_AWAY as reason:
        leases.wait_for_others(submission, str(reason))
    except Exception as error:
        if submission.kind == Kind.IMAGE and engine() is None:  # it went while it was asked
            leases.wait(submission, NO_ENGINE)
            return
        logger.exception("%s", submission)
        leases.try_again(submission, f"The platform failed ({type(error).__name__}).")


def _refuse(submission: Submission, refused: Exception) -> None:
    outcome = getattr(refused, "outcome", Outcome.REJECTED)
    secrets = [decrypt(submission.secret)] if submission.secret else []
    log = redacted(getattr(refused, "log", ""), texts=(), secrets=secrets)
    leases.fail(submission, str(refused), outcome=outcome, log=log)
    if submission.upload:
        discard(submission.upload)


def _accept(submission: Submission, arrived: Arrived, watch: Heartbeat) -> None:
    """Keep the checked files, end the check and queue the evaluations."""
    if arrived.file:
        with arrived.file.open("rb") as file:
            kept = File(BeatingFile(file, watch.beat), arrived.file.name)  # type: ignore[arg-type]
            submission.file.save(arrived.file.name, kept, save=False)
    results = {"digest": arrived.digest, "size": arrived.size, "file": submission.file.name}
    results["log"] = "\n".join(arrived.warnings)
    try:
        with transaction.atomic():
            if arrived.file and submission.owner:
                check_stored(submission.upload, submission.owner, arrived.size or 0)
            leases.finish(submission, outcome=Outcome.OK, **results)
            request_runs(submission=submission, actor=submission.owner)
    except BaseException:
        if arrived.file:
            submission.file.delete(save=False)
        raise
    if submission.upload:
        discard(submission.upload)


# What each kind brings.


def _directory(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    model = folder / "model"
    with assemble(_upload(submission), watch.beat) as path:
        bounded(partial(archives.unpack, path, model), UNPACKING, watch.beat)
    remove_macos_files(model)
    return _weights(submission, model, folder, watch)


def _hub(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    spec = ModelSpec(submission.name, submission.source, submission.revision)
    left = bytes_left(submission.owner) if submission.owner else 0
    most = min(MOST_BYTES, left)
    model = during(lambda: fetch_public(spec, folder / "model", most), watch.beat)
    return _weights(submission, model, folder, watch)


def _llm(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    return (_directory if submission.upload else _hub)(submission, folder, watch)


def _weights(submission: Submission, model: Path, folder: Path, watch: Heartbeat) -> Arrived:
    """Check a folder of weights, and pack it as a plain tar to be stored."""
    config, writing = submission.task.config, writing_of(submission)
    if submission.base:
        look: Callable[[], Path] = partial(check_adapter, model)
    elif writing:
        look = partial(check_whole, model)
    else:
        look = partial(check_folder, model, config)
    model = bounded(look, READING, watch.beat)
    kept = folder / "model.tar"
    with kept.open("wb") as file:
        pack(model, file, watch.beat)
    digest = identity_of(submission, digest_of(model, watch.beat))
    asked = runnable(config, folder=model, writing=writing)
    return Arrived(digest, kept.stat().st_size, kept, asked)


def _rows(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    task = submission.task
    with assemble(_upload(submission), watch.beat) as path:
        read = partial(read_rows, path, task.config.training_rows or 0)
        numbered = bounded(read, READING, watch.beat)
        rows = training_rows(task, numbered)
    facts = facts_of(numbered, rows)
    Submission.objects.filter(pk=submission.pk).update(data=facts)
    if digests := digests_of(task, rows):
        TrainedRows.objects.update_or_create(submission=submission, defaults={"digests": digests})
    watch.begin(0.2, gettext_noop("learning from the rows"))
    model = folder / "model"
    with trainer_for(watch.beat) as trainer:
        learn(task.config, rows, model, trainer)
    return _weights(submission, model, folder, watch)


def _image(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    if engine() is None:
        raise NotNow(NO_ENGINE)
    kept = None
    if submission.upload:
        kept = folder / "image.tar"
        with assemble(submission.upload, watch.beat) as path:
            bounded(partial(image_archives.check_image, path), UNPACKING, watch.beat)
            shutil.move(path, kept)
        found = during(partial(sandbox_images.load_image, kept), watch.beat)
    else:
        found = sandbox_images.pull_image(
            submission.source, settings.SUBMISSION_PRIVATE_HOSTS, watch.beat
        )
    facts = sandbox_images.inspect_image(found)
    # Known from here on, so that it is removed from the engine again whatever becomes of it.
    Submission.objects.filter(pk=submission.pk).update(digest=facts.id)
    if problems := sandbox_images.check_image(facts):
        raise Refused("\n".join(problems))
    model = runnable(submission.task.config, image=facts.id, adapter=submission.adapter)
    return Arrived(facts.id, facts.size, kept, model)


def _endpoint(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    return Arrived("", model=runnable(submission.task.config))


def _chat(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    digest = identity_of(submission, submission.source)
    return Arrived(digest, model=runnable(submission.task.config))


def _predictions(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    version = submission.evaluation_set
    assert version is not None  # the service sees to it
    uids = [row["uid"] for row in input_rows(version)]
    kept = folder / "predictions.jsonl.gz"
    with assemble(_upload(submission), watch.beat) as path:
        keep = partial(keep_predictions, submission.task.config, uids, path, kept)
        try:
            digest = bounded(keep, ANSWERS, watch.beat)
        except OtherIds as refused:
            guess = guess_of(submission.task, refused.ids)
            raise Refused(f"{refused} {guess}", refused.outcome) from None
    return Arrived(digest, kept.stat().st_size, kept)


def _upload(submission: Submission) -> Upload:
    if submission.upload is None:
        raise Refused(gettext_noop("The file is gone. Submit it again."))
    return submission.upload


RECEIVE: Mapping[str, Callable[[Submission, Path, Heartbeat], Arrived]] = {
    Kind.DIRECTORY: _directory,
    Kind.HUB: _hub,
    Kind.LLM: _llm,
    Kind.ROWS: _rows,
    Kind.IMAGE: _image,
    Kind.ENDPOINT: _endpoint,
    Kind.CHAT: _chat,
    Kind.PREDICTIONS: _predictions,
}


def _answer_five(
    submission: Submission, model: Runnable, folder: Path, watch: Heartbeat
) -> Sequence[str]:
    """Have the model answer five examples that may be shown, and return the warnings.

    Raises Refused, NotNow and Away.
    """
    if is_remote(submission):
        note_shown(submission.task, FIVE)
    ending, _answers = answer_five(
        submission.task.config,
        model,
        _runner(submission, model),
        shown_inputs(submission.task),
        machine_limits().for_check(),
        folder,
        watch.beat,
    )
    return ending.warnings


def _runner(submission: Submission, model: Runnable) -> Runner:
    if is_remote(submission):
        return remote_runner(submission)
    return local_runner(submission, model, submission)
