"""The check of what was submitted: unpacked with care, five examples answered, then kept."""

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.db import transaction
from django.utils.translation import gettext_noop

from dynabench.lib.bounded import Bounds, OutOfBounds, bounded
from dynabench.lib.encryption import decrypt
from dynabench.lib.errors import Unavailable
from dynabench.lib.scratch import scratch
from evaluation.contract import GIB, MIB, Outcome, Runnable
from evaluation.heartbeat import BeatingFile, during
from evaluation.inference.precheck import (
    NotNow,
    Refused,
    answer_five,
    keep_predictions,
)
from evaluation.inference.requests import runnable
from evaluation.models import Submission, Upload
from evaluation.queue import leases
from evaluation.queue.attempt_keys import key_of
from evaluation.queue.leases import Heartbeat
from evaluation.runs.hub import fetch_public
from evaluation.runs.model_cache import digest_of, pack
from evaluation.runs.model_source import endpoint_for, machine_limits
from evaluation.runs.services import request_runs
from evaluation.sandbox import images as sandbox_images
from evaluation.sandbox.choose import runner_for
from evaluation.sandbox.endpoint import EndpointRunner
from evaluation.sandbox.engine import engine
from evaluation.sandbox.logs import redacted
from evaluation.sandbox.monitor import Runner
from evaluation.sets.selectors import input_rows
from evaluation.submissions.selectors import shown_inputs
from evaluation.uploads import archives, image_archives
from evaluation.uploads.chunked import UploadRefused, assemble, bytes_left, check_stored, discard
from evaluation.uploads.model_folders import MOST_BYTES, check_folder, remove_macos_files
from tasks.models import Task
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.serving.errors import MisconfiguredError
from tasks.targets.serving.spec import ModelSpec

logger = logging.getLogger(__name__)
Kind = Submission.Kind

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
)


@dataclass(frozen=True)
class Arrived:
    """What was submitted, looked through. file: what is kept of it; model: what can be asked."""

    digest: str
    size: int | None = None
    file: Path | None = None
    model: Runnable | None = None


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
                watch.begin(0.5, gettext_noop("answering five examples"))
                _answer_five(submission, arrived.model, folder, watch)
            watch.begin(0.9, gettext_noop("storing it"))
            _accept(submission, arrived, watch)
    except leases.LeaseLost:
        raise
    except REFUSALS as refused:
        _refuse(submission, refused)
    except EndpointError as error:
        _refuse(submission, Refused(str(error)))
    except (NotNow, Unavailable) as reason:
        leases.wait(submission, str(reason))
    except Exception as error:
        logger.exception("%s", submission)
        leases.try_again(submission, f"The platform failed ({type(error).__name__}).")


def _refuse(submission: Submission, refused: Exception) -> None:
    outcome = getattr(refused, "outcome", Outcome.REJECTED)
    log = redacted(getattr(refused, "log", ""), texts=(), secrets=_secrets(submission))
    leases.fail(submission, str(refused), outcome=outcome, log=log)
    if submission.upload:
        discard(submission.upload)


def _secrets(submission: Submission) -> list[str]:
    return [decrypt(submission.secret)] if submission.secret else []


def _accept(submission: Submission, arrived: Arrived, watch: Heartbeat) -> None:
    """Keep the checked files, end the check and queue the evaluations."""
    if arrived.file:
        with arrived.file.open("rb") as file:
            kept = File(BeatingFile(file, watch.beat), arrived.file.name)  # type: ignore[arg-type]
            submission.file.save(arrived.file.name, kept, save=False)
    results = {"digest": arrived.digest, "size": arrived.size, "file": submission.file.name}
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
    return _weights(submission.task, model, folder, watch)


def _hub(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    spec = ModelSpec(submission.name, submission.source, submission.revision)
    left = bytes_left(submission.owner) if submission.owner else 0
    most = min(MOST_BYTES, left)
    model = during(lambda: fetch_public(spec, folder / "model", most), watch.beat)
    return _weights(submission.task, model, folder, watch)


def _weights(task: Task, model: Path, folder: Path, watch: Heartbeat) -> Arrived:
    """A folder of weights; what is kept of it is a plain tar."""
    model = bounded(partial(check_folder, model, task.config), READING, watch.beat)
    kept = folder / "model.tar"
    with kept.open("wb") as file:
        pack(model, file, watch.beat)
    digest = digest_of(model, watch.beat)
    return Arrived(digest, kept.stat().st_size, kept, runnable(task.config, folder=model))


def _image(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    if engine() is None:
        raise NotNow(gettext_noop("It waits for a worker with a container engine (Docker)."))
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


def _predictions(submission: Submission, folder: Path, watch: Heartbeat) -> Arrived:
    version = submission.evaluation_set
    assert version is not None  # the service sees to it
    uids = [row["uid"] for row in input_rows(version)]
    kept = folder / "predictions.jsonl.gz"
    with assemble(_upload(submission), watch.beat) as path:
        keep = partial(keep_predictions, submission.task.config, uids, path, kept)
        digest = bounded(keep, ANSWERS, watch.beat)
    return Arrived(digest, kept.stat().st_size, kept)


def _upload(submission: Submission) -> Upload:
    if submission.upload is None:
        raise Refused(gettext_noop("The file is gone. Submit it again."))
    return submission.upload


RECEIVE: Mapping[str, Callable[[Submission, Path, Heartbeat], Arrived]] = {
    Kind.DIRECTORY: _directory,
    Kind.HUB: _hub,
    Kind.IMAGE: _image,
    Kind.ENDPOINT: _endpoint,
    Kind.PREDICTIONS: _predictions,
}


def _answer_five(submission: Submission, model: Runnable, folder: Path, watch: Heartbeat) -> None:
    """Have the model answer five examples that may be shown. Raises Refused and NotNow."""
    answer_five(
        submission.task.config,
        model,
        _runner(submission, model),
        shown_inputs(submission.task),
        machine_limits().for_check(),
        folder,
        watch.beat,
    )


def _runner(submission: Submission, model: Runnable) -> Runner:
    if submission.kind == Kind.ENDPOINT:
        return EndpointRunner(endpoint_for(submission))
    return runner_for(model, key_of(submission))
