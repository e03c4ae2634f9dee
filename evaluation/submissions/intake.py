"""The intake of submissions: check what arrived, let it answer five examples, and store it.

`evaluation.jobs` calls `check_arrival` for each claimed submission. How the files of each kind are
received is in `evaluation.submissions.kinds`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.files import File
from django.db import transaction
from django.utils.translation import gettext_noop

from core.data.encryption import decrypt
from core.errors import Unavailable
from core.files.bounded import OutOfBounds
from core.files.storage.disk import open_scratch_folder
from evaluation.contract import NotNow, Outcome, Runnable, WorkStopped
from evaluation.heartbeat import BeatingFile
from evaluation.isolation.inference.precheck import (
    EXAMPLE_COUNT,
    SubmissionRefused,
    answer_examples,
)
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.isolation.sandbox import images as sandbox_images
from evaluation.isolation.sandbox.choose import NO_ENGINE_MESSAGE, has_engine
from evaluation.isolation.sandbox.logs import redact_log
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.isolation.uploads import archives
from evaluation.isolation.uploads.chunked import (
    UploadRefused,
    check_storage_quota,
    discard_upload,
)
from evaluation.models import Submission
from evaluation.runs.carriers import has_cluster
from evaluation.runs.endpoints import CannotFetch
from evaluation.runs.folders import equip_model
from evaluation.runs.runners import choose_local_runner, choose_remote_runner, get_machine_limits
from evaluation.runs.selectors import is_remote
from evaluation.runs.services import request_runs
from evaluation.submissions.kinds import KINDS, find_submission_kind
from evaluation.submissions.receiving import ReceivedModel
from evaluation.submissions.selectors import list_public_inputs
from evaluation.test_sets.services import record_shown_examples
from serving.errors import MisconfiguredError
from serving.hub import HubUnavailableError
from tasks.targets.endpoints.base import EndpointError

REFUSAL_ERRORS = (
    SubmissionRefused,
    OutOfBounds,
    UploadRefused,
    archives.ArchiveRefused,
    sandbox_images.ImageRefused,
    MisconfiguredError,
    CannotFetch,
)
"""Errors in the submission itself. Their message is shown to its owner."""
STOP_ERRORS = (leases.LeaseLost, WorkStopped, Unavailable, HubUnavailableError)
"""Errors that end an attempt by rules of their own: `evaluation.isolation.queue.lifecycle`."""


def check_arrival(submission: Submission) -> None:
    """Check a claimed submission; queue its evaluations, or store why it was refused.

    1. Receive it: unpack or fetch its files, inspect them, and find the model to call.
    2. Have the model answer five public examples, which also tests that it starts.
    3. Store its files, end the check and request its runs, in one transaction.

    Raises LeaseLost; then nothing was stored.
    """
    do_job_work(submission, _check_submission)


def _check_submission(submission: Submission, heartbeat: Heartbeat) -> None:
    try:
        with open_scratch_folder() as folder:
            heartbeat.begin_step(0.1, gettext_noop("reading the submission"))
            received_model = _receive_files(submission, folder, heartbeat)
            if received_model.model:
                warnings = _try_model(submission, received_model.model, folder, heartbeat)
                received_model = replace(received_model, warnings=warnings)
            heartbeat.begin_step(0.9, gettext_noop("storing the submission"))
            _accept_submission(submission, received_model, heartbeat)
    except REFUSAL_ERRORS as refusal:
        _refuse_submission(submission, refusal)
    except EndpointError as error:
        _refuse_submission(submission, SubmissionRefused(str(error)))
    except STOP_ERRORS:
        raise
    except Exception as error:
        if KINDS[submission.kind].is_image and not has_engine():  # it stopped during the check
            raise NotNow(NO_ENGINE_MESSAGE) from error
        raise


def _receive_files(submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
    """Receive the files of a submission, as its kind requires."""
    kind = find_submission_kind(submission.kind)
    assert kind is not None  # targets are added by the site and never checked here
    return kind.receive(submission, folder, heartbeat)


def _try_model(
    submission: Submission, model: Runnable, folder: Path, heartbeat: Heartbeat
) -> Sequence[str]:
    """Have the model answer five examples, and return the warnings about its answers."""
    has_nodes = has_cluster()
    with equip_model(submission, model, heartbeat.beat, is_elsewhere=has_nodes) as equipped_model:
        heartbeat.begin_step(0.5, gettext_noop("answering five examples"))
        return _answer_public_examples(submission, equipped_model, folder, heartbeat)


def _refuse_submission(submission: Submission, refusal: Exception) -> None:
    """End the check with the reason for the refusal, and discard the upload."""
    outcome = getattr(refusal, "outcome", Outcome.REJECTED)
    # An endpoint's messages in the log may repeat the token that was sent to it.
    secrets = [decrypt(submission.secret)] if submission.secret else []
    log = redact_log(getattr(refusal, "log", ""), texts=(), secrets=secrets)
    leases.fail_job(submission, str(refusal), outcome=outcome, log=log)
    if submission.upload:
        discard_upload(submission.upload)


def _accept_submission(
    submission: Submission, received_model: ReceivedModel, heartbeat: Heartbeat
) -> None:
    """Store the checked files, end the check, request the evaluations and discard the upload.

    Raises LeaseLost and UploadRefused; then nothing was stored.
    """
    # The file is stored before the transaction, which would otherwise last too long.
    if received_model.file:
        with received_model.file.open("rb") as file:
            content: Any = BeatingFile(file, heartbeat.beat)
            submission.file.save(received_model.file.name, File(content), save=False)
    results = {
        "digest": received_model.digest,
        "size": received_model.size,
        "file": submission.file.name,
    }
    results["log"] = "\n".join(received_model.warnings)
    try:
        with transaction.atomic():
            if received_model.file and submission.owner:
                check_storage_quota(submission.upload, submission.owner, received_model.size or 0)
            leases.finish_job(submission, outcome=Outcome.OK, **results)
            request_runs(submission=submission, actor=submission.owner)
    except BaseException:
        # Whatever prevented storing the row, even a lost lease, the file must not remain.
        if received_model.file:
            submission.file.delete(save=False)
        raise
    if submission.upload:
        discard_upload(submission.upload)


def _answer_public_examples(
    submission: Submission, model: Runnable, folder: Path, heartbeat: Heartbeat
) -> Sequence[str]:
    """Have the model answer five public examples, and return the warnings.

    Raises SubmissionRefused, NotNow and ServerAway.
    """
    if is_remote(submission):
        record_shown_examples(submission.task, EXAMPLE_COUNT)
    ending, _answers = answer_examples(
        submission.task.config,
        model,
        _choose_runner(submission, model),
        list_public_inputs(submission.task),
        get_machine_limits().restrict_for_check(),
        folder,
        heartbeat.beat,
    )
    return ending.warnings


def _choose_runner(submission: Submission, model: Runnable) -> Runner:
    if is_remote(submission):
        return choose_remote_runner(submission)
    return choose_local_runner(submission, model, submission)
