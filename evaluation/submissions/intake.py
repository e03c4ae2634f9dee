"""The intake of submissions: what arrived is checked, answers five examples, and is stored.

`evaluation.jobs` calls `check_arrival` for each claimed submission. A new kind of submission is a
function of its own here, in `RECEIVERS`.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.db import transaction
from django.utils.translation import gettext_noop

from core.data.encryption import decrypt
from core.errors import Unavailable
from core.files.bounded import Bounds, OutOfBounds, bounded
from core.files.storage.disk import scratch
from evaluation.contract import GIB, MIB, NotNow, Outcome, Runnable, WorkStopped
from evaluation.heartbeat import BeatingFile, during
from evaluation.isolation.inference.precheck import (
    FIVE,
    OtherIds,
    Refused,
    answer_five,
    keep_predictions,
)
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import carry_through
from evaluation.isolation.sandbox import images as sandbox_images
from evaluation.isolation.sandbox.choose import NO_ENGINE
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
    digest_folder,
    remove_macos_files,
)
from evaluation.models import Submission, TrainedRows, Upload
from evaluation.runs.elsewhere import has_cluster, trainer_for
from evaluation.runs.endpoints import CannotFetch, identity_of, writing_of
from evaluation.runs.folders import equipped
from evaluation.runs.hub import fetch_public
from evaluation.runs.model_cache import pack_folder
from evaluation.runs.runners import choose_local_runner, choose_remote_runner, machine_limits
from evaluation.runs.selectors import is_remote
from evaluation.runs.services import request_runs
from evaluation.submissions.selectors import shown_inputs
from evaluation.submissions.training_data import digests_of, facts_of, learn, training_rows
from evaluation.task_shape import runnable
from evaluation.test_sets.selectors import guess_of, input_rows
from evaluation.test_sets.services import note_shown
from evaluation.training.row_files import read_rows
from serving.errors import MisconfiguredError
from serving.hub import HubAwayError
from serving.spec import ModelSpec
from tasks.targets.endpoints.base import EndpointError

Kind = Submission.Kind

# Strangers' files are read in a separate process that is bound to these.
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
"""What is wrong with the submission; the message tells its owner."""
STOPPED = (leases.LeaseLost, WorkStopped, Unavailable, HubAwayError)
"""What ends an attempt by a rule of its own: `evaluation.isolation.queue.lifecycle`."""


@dataclass(frozen=True)
class ReceivedModel:
    """A submission after its files were looked through.

    file: what is stored of it. model: what can be asked; None for predictions.
    warnings: of the check, such as examples without an answer; its owner reads them in the log.
    """

    digest: str
    size: int | None = None
    file: Path | None = None
    model: Runnable | None = None
    warnings: Sequence[str] = ()


def check_arrival(submission: Submission) -> None:
    """Check a claimed submission and queue its evaluations, or say what is wrong with it.

    1. Receive it: unpack or fetch its files, look through them, and find what can be asked.
    2. Have it answer five examples that anybody may see, which also starts it once.
    3. Store its files, end the check and request its runs, in one transaction.

    Raises LeaseLost; then nothing was stored.
    """
    carry_through(submission, _check)


def _check(submission: Submission, heartbeat: Heartbeat) -> None:
    try:
        with scratch() as folder:
            heartbeat.begin(0.1, gettext_noop("reading the submission"))
            received = RECEIVERS[submission.kind](submission, folder, heartbeat)
            if received.model:
                warnings = _try_out(submission, received.model, folder, heartbeat)
                received = replace(received, warnings=warnings)
            heartbeat.begin(0.9, gettext_noop("storing it"))
            _accept(submission, received, heartbeat)
    except REFUSALS as refusal:
        _refuse(submission, refusal)
    except EndpointError as error:
        _refuse(submission, Refused(str(error)))
    except STOPPED:
        raise
    except Exception as error:
        if submission.kind == Kind.IMAGE and engine() is None:  # it went while it was asked
            raise NotNow(NO_ENGINE) from error
        raise


def _try_out(
    submission: Submission, model: Runnable, folder: Path, heartbeat: Heartbeat
) -> Sequence[str]:
    """Have the model answer five examples, and return the warnings about its answers."""
    has_nodes = has_cluster()
    with equipped(submission, model, heartbeat.beat, is_elsewhere=has_nodes) as equipped_model:
        heartbeat.begin(0.5, gettext_noop("answering five examples"))
        return _answer_five(submission, equipped_model, folder, heartbeat)


def _refuse(submission: Submission, refusal: Exception) -> None:
    """End the check with what is wrong, and discard the upload."""
    outcome = getattr(refusal, "outcome", Outcome.REJECTED)
    # An endpoint's words in the log may repeat the token that was sent to it.
    secrets = [decrypt(submission.secret)] if submission.secret else []
    log = redacted(getattr(refusal, "log", ""), texts=(), secrets=secrets)
    leases.fail(submission, str(refusal), outcome=outcome, log=log)
    if submission.upload:
        discard(submission.upload)


def _accept(submission: Submission, received: ReceivedModel, heartbeat: Heartbeat) -> None:
    """Store the checked files, end the check and request the evaluations."""
    # The file goes to the storage before the transaction, which would otherwise last as long.
    if received.file:
        with received.file.open("rb") as file:
            content: Any = BeatingFile(file, heartbeat.beat)
            submission.file.save(received.file.name, File(content), save=False)
    results = {"digest": received.digest, "size": received.size, "file": submission.file.name}
    results["log"] = "\n".join(received.warnings)
    try:
        with transaction.atomic():
            if received.file and submission.owner:
                check_stored(submission.upload, submission.owner, received.size or 0)
            leases.finish_job(submission, outcome=Outcome.OK, **results)
            request_runs(submission=submission, actor=submission.owner)
    except BaseException:
        # Whatever kept the row from being stored, a lost lease too: nothing may name the file.
        if received.file:
            submission.file.delete(save=False)
        raise
    if submission.upload:
        discard(submission.upload)


# What each kind brings.


def _receive_directory(submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
    model = folder / "model"
    with assemble(_upload_of(submission), heartbeat.beat) as path:
        bounded(partial(archives.unpack_archive, path, model), UNPACKING, heartbeat.beat)
    remove_macos_files(model)
    return _receive_weights(submission, model, folder, heartbeat)


def _receive_hub_model(submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
    spec = ModelSpec(submission.name, submission.source, submission.revision)
    left = bytes_left(submission.owner) if submission.owner else 0
    most = min(MOST_BYTES, left)
    model = during(lambda: fetch_public(spec, folder / "model", most), heartbeat.beat)
    return _receive_weights(submission, model, folder, heartbeat)


def _receive_language_model(
    submission: Submission, folder: Path, heartbeat: Heartbeat
) -> ReceivedModel:
    if submission.upload:
        return _receive_directory(submission, folder, heartbeat)
    return _receive_hub_model(submission, folder, heartbeat)


def _receive_weights(
    submission: Submission, model: Path, folder: Path, heartbeat: Heartbeat
) -> ReceivedModel:
    """Check a folder of weights, and pack it as a plain tar to be stored."""
    config, writing = submission.task.config, writing_of(submission)
    check: Callable[[], Path]
    if submission.base:
        check = partial(check_adapter, model)
    elif writing:
        check = partial(check_whole, model)
    else:
        check = partial(check_folder, model, config)
    model = bounded(check, READING, heartbeat.beat)
    archive = folder / "model.tar"
    with archive.open("wb") as file:
        pack_folder(model, file, heartbeat.beat)
    digest = identity_of(submission, digest_folder(model, heartbeat.beat))
    model_to_ask = runnable(config, folder=model, writing=writing)
    return ReceivedModel(digest, archive.stat().st_size, archive, model_to_ask)


def _receive_rows(submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
    """Train the one model of the task's data board on the submitted rows."""
    task = submission.task
    with assemble(_upload_of(submission), heartbeat.beat) as path:
        read = partial(read_rows, path, task.config.training_rows or 0)
        numbered = bounded(read, READING, heartbeat.beat)
        rows = training_rows(task, numbered)
    # Not in `_accept`, because no other kind has them. A check that begins again writes the same.
    Submission.objects.filter(pk=submission.pk).update(data=facts_of(numbered, rows))
    if digests := digests_of(task, rows):
        TrainedRows.objects.update_or_create(submission=submission, defaults={"digests": digests})
    heartbeat.begin(0.2, gettext_noop("learning from the rows"))
    model = folder / "model"
    with trainer_for(heartbeat.beat) as trainer:
        learn(task.config, rows, model, trainer)
    return _receive_weights(submission, model, folder, heartbeat)


def _receive_image(submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
    if engine() is None:
        raise NotNow(NO_ENGINE)
    archive = None
    if submission.upload:
        archive = folder / "image.tar"
        with assemble(submission.upload, heartbeat.beat) as path:
            bounded(partial(image_archives.check_image, path), UNPACKING, heartbeat.beat)
            shutil.move(path, archive)
        image = during(partial(sandbox_images.load_image, archive), heartbeat.beat)
    else:
        image = sandbox_images.pull_image(
            submission.source, settings.SUBMISSION_PRIVATE_HOSTS, heartbeat.beat
        )
    facts = sandbox_images.inspect_image(image)
    # Stored before the checks: cleanup removes from the engine only images whose digest is in a
    # row, and a refused one has to go as well.
    Submission.objects.filter(pk=submission.pk).update(digest=facts.id)
    if problems := sandbox_images.check_image(facts):
        raise Refused("\n".join(problems))
    model = runnable(submission.task.config, image=facts.id, adapter=submission.adapter)
    return ReceivedModel(facts.id, facts.size, archive, model)


def _receive_endpoint(submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
    return ReceivedModel("", model=runnable(submission.task.config))


def _receive_chat_model(
    submission: Submission, folder: Path, heartbeat: Heartbeat
) -> ReceivedModel:
    digest = identity_of(submission, submission.source)
    return ReceivedModel(digest, model=runnable(submission.task.config))


def _receive_predictions(
    submission: Submission, folder: Path, heartbeat: Heartbeat
) -> ReceivedModel:
    """Check every line of a predictions file. Nothing is asked: the answers are in the file."""
    version = submission.evaluation_set
    assert version is not None  # `check_sources` refuses predictions without a set
    uids = [row["uid"] for row in input_rows(version)]
    packed = folder / "predictions.jsonl.gz"
    with assemble(_upload_of(submission), heartbeat.beat) as path:
        keep = partial(keep_predictions, submission.task.config, uids, path, packed)
        try:
            digest = bounded(keep, ANSWERS, heartbeat.beat)
        except OtherIds as refusal:
            guess = guess_of(submission.task, refusal.ids)
            raise Refused(f"{refusal} {guess}", refusal.outcome) from None
    return ReceivedModel(digest, packed.stat().st_size, packed)


def _upload_of(submission: Submission) -> Upload:
    """Return the uploaded file. Raises Refused if it was discarded."""
    if submission.upload is None:
        raise Refused(gettext_noop("The file is gone. Submit it again."))
    return submission.upload


Receiver = Callable[[Submission, Path, Heartbeat], ReceivedModel]
RECEIVERS: Mapping[str, Receiver] = {
    Kind.DIRECTORY: _receive_directory,
    Kind.HUB: _receive_hub_model,
    Kind.LLM: _receive_language_model,
    Kind.ROWS: _receive_rows,
    Kind.IMAGE: _receive_image,
    Kind.ENDPOINT: _receive_endpoint,
    Kind.CHAT: _receive_chat_model,
    Kind.PREDICTIONS: _receive_predictions,
}
"""What unpacks or fetches each kind, and checks it; the folder takes its files."""


def _answer_five(
    submission: Submission, model: Runnable, folder: Path, heartbeat: Heartbeat
) -> Sequence[str]:
    """Have the model answer five examples that may be shown, and return the warnings.

    Raises Refused, NotNow and ServerAway.
    """
    if is_remote(submission):
        note_shown(submission.task, FIVE)
    ending, _answers = answer_five(
        submission.task.config,
        model,
        _choose_runner(submission, model),
        shown_inputs(submission.task),
        machine_limits().for_check(),
        folder,
        heartbeat.beat,
    )
    return ending.warnings


def _choose_runner(submission: Submission, model: Runnable) -> Runner:
    if is_remote(submission):
        return choose_remote_runner(submission)
    return choose_local_runner(submission, model, submission)
