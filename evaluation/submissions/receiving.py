"""Steps for receiving files that several kinds of submission share.

A worker calls them in `check_arrival` of `evaluation.submissions.intake`. Forms load this module,
too, so it does not load a container engine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from django.utils.translation import gettext_noop

from core.files.bounded import Bounds, run_bounded
from evaluation.contract import GIB, MIB, Runnable
from evaluation.heartbeat import call_with_beat
from evaluation.isolation.inference.precheck import SubmissionRefused
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.uploads.adapters import check_adapter, check_whole_model
from evaluation.isolation.uploads.archives import unpack_archive
from evaluation.isolation.uploads.chunked import assemble_upload, count_remaining_bytes
from evaluation.isolation.uploads.model_folders import (
    MAX_FOLDER_BYTES,
    check_model_folder,
    digest_folder,
    remove_macos_files,
)
from evaluation.models import Submission, Upload
from evaluation.runs.endpoints import compute_identity, read_writing_settings
from evaluation.runs.hub import fetch_public_model
from evaluation.runs.model_cache import pack_folder
from evaluation.task_shape import make_runnable
from serving.spec import ModelSpec

# Untrusted files are read in a separate process with these limits.
UNPACKING_BOUNDS = Bounds(seconds=3600, memory_bytes=512 * MIB)
READING_BOUNDS = Bounds(seconds=600, memory_bytes=GIB)
ANSWERS_BOUNDS = Bounds(seconds=3600, memory_bytes=4 * GIB)  # ten million answers, mostly their ids


@dataclass(frozen=True)
class ReceivedModel:
    """A submission after its files were inspected.

    file: the file to store. model: the model that can be called; None for predictions.
    warnings: from the check, such as examples without an answer, for the owner's log.
    """

    digest: str
    size: int | None = None
    file: Path | None = None
    model: Runnable | None = None
    warnings: Sequence[str] = ()


def find_uploaded_file(submission: Submission) -> Upload:
    """Return the uploaded file. Raises SubmissionRefused if it was discarded."""
    if submission.upload is None:
        raise SubmissionRefused(gettext_noop("We no longer have the file. Submit it again."))
    return submission.upload


def receive_archive(submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
    """Unpack an uploaded folder of weights and check it."""
    model = folder / "model"
    with assemble_upload(find_uploaded_file(submission), heartbeat.beat) as path:
        run_bounded(partial(unpack_archive, path, model), UNPACKING_BOUNDS, heartbeat.beat)
    remove_macos_files(model)
    return receive_weights(submission, model, folder, heartbeat)


def receive_from_hub(submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
    """Download a model from the hub and check it."""
    spec = ModelSpec(submission.name, submission.source, submission.revision)
    bytes_left = count_remaining_bytes(submission.owner) if submission.owner else 0
    max_bytes = min(MAX_FOLDER_BYTES, bytes_left)
    model = call_with_beat(
        lambda: fetch_public_model(spec, folder / "model", max_bytes), heartbeat.beat
    )
    return receive_weights(submission, model, folder, heartbeat)


def receive_weights(
    submission: Submission, model: Path, folder: Path, heartbeat: Heartbeat
) -> ReceivedModel:
    """Check a folder of weights, and pack it as an uncompressed tar for storage."""
    config, writing_settings = submission.task.config, read_writing_settings(submission)
    check: Callable[[], Path]
    if submission.base:
        check = partial(check_adapter, model)
    elif writing_settings:
        check = partial(check_whole_model, model)
    else:
        check = partial(check_model_folder, model, config)
    model = run_bounded(check, READING_BOUNDS, heartbeat.beat)
    archive = folder / "model.tar"
    with archive.open("wb") as file:
        pack_folder(model, file, heartbeat.beat)
    digest = compute_identity(submission, digest_folder(model, heartbeat.beat))
    model_to_ask = make_runnable(config, folder=model, writing_settings=writing_settings)
    return ReceivedModel(digest, archive.stat().st_size, archive, model_to_ask)
