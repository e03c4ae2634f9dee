"""Provide a submission's model, and the runner that runs or calls it, for every kind of job."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from core.files.storage.disk import open_scratch_folder
from evaluation.contract import BeatCallback, Runnable
from evaluation.heartbeat import CHUNK_BYTES, BeatingFile
from evaluation.isolation.sandbox import images
from evaluation.isolation.sandbox.endpoint import EndpointRunner
from evaluation.isolation.sandbox.limits import CHAT_CALL_LIMITS, Limits
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.isolation.sandbox.writing import WritingRunner
from evaluation.kinds import KINDS
from evaluation.models import EvaluationRun, Submission
from evaluation.runs.carriers import choose_sandbox, has_cluster
from evaluation.runs.chat.asking import UNUSED_URL, make_meter
from evaluation.runs.endpoints import (
    CannotFetch,
    make_prompt_endpoint,
    make_submission_endpoint,
    read_writing_settings,
)
from evaluation.runs.folders import equip_model, open_model_folder
from evaluation.runs.selectors import is_remote, is_served_here
from evaluation.task_shape import make_runnable
from serving.errors import MisconfiguredError
from serving.spec import find_weights
from tasks.models import TargetModel
from tasks.targets.connect import build_spec


def get_machine_limits() -> Limits:
    """Return the site's limits on what a model may use on a whole set."""
    return Limits.build_for_machine(
        settings.EVALUATION_MEMORY_GIB, settings.EVALUATION_CPUS, settings.EVALUATION_SECONDS
    )


@contextmanager
def open_model(
    submission: Submission, job: EvaluationRun | Submission, beat: BeatCallback
) -> Iterator[tuple[Runnable, Runner]]:
    """Provide the model of a submission and its runner, which exist only inside the block.

    job: the claimed run or check that needs them. Predictions need no runner.
    Raises CannotFetch, EndpointError, ImageRefused, NoEngine and the exceptions of `beat`.
    """
    # Neither needs files: one runs elsewhere, the other on our own model server.
    if is_remote(submission) or is_served_here(submission):
        yield make_runnable(submission.task.config), choose_remote_runner(submission)
        return
    with fetch_model(submission, beat, is_elsewhere=has_cluster()) as model:
        yield model, choose_local_runner(submission, model, job)


def choose_local_runner(
    submission: Submission, model: Runnable, job: EvaluationRun | Submission
) -> Runner:
    """Return the runner for a model on this machine or on the site's cluster.

    Raises NoEngine and CannotFetch.
    """
    runner = choose_sandbox(model, job)
    if KINDS[submission.kind].writes_here:  # it writes texts with the answers
        return WritingRunner(runner, make_prompt_endpoint(submission, UNUSED_URL))
    return runner


def choose_remote_runner(submission: Submission) -> Runner:
    """Return the runner that calls a remote model, or a model on our model server.

    Raises EndpointError(misconfigured) and CannotFetch.
    """
    if KINDS[submission.kind].has_prompt:  # its owner pays, up to a cap
        return EndpointRunner(
            make_submission_endpoint(submission), CHAT_CALL_LIMITS, make_meter(submission)
        )
    if is_served_here(submission):
        return EndpointRunner(make_submission_endpoint(submission), CHAT_CALL_LIMITS)
    return EndpointRunner(make_submission_endpoint(submission))


@contextmanager
def fetch_model(
    submission: Submission, beat: BeatCallback, *, is_elsewhere: bool = False
) -> Iterator[Runnable]:
    """Provide the model of a submission that is not remote. It exists only inside the block.

    is_elsewhere: whether it then runs on a cluster node. Raises CannotFetch, NoEngine, ImageRefused
    and the exceptions of `beat`.
    """
    config = submission.task.config
    if KINDS[submission.kind].is_image:
        image = make_runnable(
            config, image=_load_image(submission, beat), adapter=submission.adapter
        )
        with equip_model(submission, image, beat, is_elsewhere=is_elsewhere) as model:
            yield model
    elif submission.target:
        model = make_runnable(config, folder=_get_target_folder(submission.target))
        with equip_model(submission, model, beat, is_elsewhere=is_elsewhere) as equipped_model:
            yield equipped_model
    else:
        with open_model_folder(submission, beat) as folder:
            model = make_runnable(
                config, folder=folder, writing_settings=read_writing_settings(submission)
            )
            with equip_model(submission, model, beat, is_elsewhere=is_elsewhere) as equipped_model:
                yield equipped_model


def _get_target_folder(target: TargetModel) -> Path:
    """Return the folder of a target's files, the same one that the model server uses.

    Raises CannotFetch.
    """
    try:
        return find_weights(build_spec(target))[0]
    except MisconfiguredError as error:
        raise CannotFetch(str(error)) from None


def _load_image(submission: Submission, beat: BeatCallback) -> str:
    """Load the image that was checked into the engine, if it is missing there; return its id.

    The image is identified by its id, because its name may refer to another image by now. Raises
    CannotFetch if it does, and ImageRefused.
    """
    if images.has_image(submission.digest):
        return submission.digest
    if submission.file:
        with open_scratch_folder() as folder:
            archive = folder / "image.tar"
            with submission.file.open("rb") as stored_file, archive.open("wb") as copy:
                shutil.copyfileobj(BeatingFile(stored_file, beat), copy, CHUNK_BYTES)
            image = images.load_image(archive)
    else:
        image = images.pull_image(submission.source, settings.SUBMISSION_PRIVATE_HOSTS, beat)
    if image != submission.digest:
        raise CannotFetch(
            f"The image is {image} now, but {submission.digest} was checked. Submit it again."
        )
    return image
