"""From a submission to what can be run on this machine: a folder of weights, or an image."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from django.conf import settings
from django.utils.translation import gettext_noop

from dynabench.lib.encryption import Unreadable, decrypt
from dynabench.lib.scratch import scratch
from evaluation.contract import ENDPOINT_ADAPTERS, Beat, Runnable
from evaluation.inference.requests import runnable
from evaluation.models import Submission
from evaluation.runs.model_cache import CHUNK, Beating, digest_of, kept, unpack
from evaluation.sandbox.limits import Limits
from tasks.targets.connect import endpoint_of, spec_of
from tasks.targets.endpoints.base import QA_KIND, Endpoint, EndpointConfig
from tasks.targets.endpoints.registry import build
from tasks.targets.serving.errors import MisconfiguredError
from tasks.targets.serving.spec import find_weights

Kind = Submission.Kind


class CannotFetch(Exception):
    """What was handed in is not to be had as it was; the message says why."""


def machine_limits() -> Limits:
    """What a model may use on a whole set, as this installation has it."""
    return Limits.of_machine(
        settings.EVALUATION_MEMORY_GIB, settings.EVALUATION_CPUS, settings.EVALUATION_SECONDS
    )


def nothing() -> None:
    """A heartbeat where none is needed."""


@contextmanager
def materialised(submission: Submission, beat: Beat = nothing) -> Iterator[Runnable]:
    """The model of a submission on this machine; it stays for as long as the block lasts.

    For models that run here; remote ones have `endpoint_for`, predictions `predictions_file`.
    Raises CannotFetch, and what `beat` raises.
    """
    config, adapter = submission.task.config, submission.adapter
    if submission.kind == Kind.IMAGE:
        yield runnable(config, image=_image(submission, beat), adapter=adapter)
    elif submission.target:
        yield runnable(config, folder=_target_folder(submission))
    else:
        with _folder(submission, beat) as folder:
            yield runnable(config, folder=folder)


def endpoint_for(submission: Submission) -> Endpoint:
    """The endpoint at which a submission, or the target that it stands for, is asked.

    Raises EndpointError(misconfigured) and CannotFetch.
    """
    if submission.target:
        return endpoint_of(submission.target)
    try:
        secret = decrypt(submission.secret)
    except Unreadable as error:
        raise CannotFetch(f"The endpoint's secret cannot be read: {error}") from None
    config = submission.task.config
    component = config.component(config.answer_field)
    is_span = component.type == "span"
    asked = runnable(submission.task.config)
    return build(
        ENDPOINT_ADAPTERS[submission.adapter],
        EndpointConfig(
            url=submission.source,
            fields=asked.fields,
            output=asked.output,
            labels=asked.labels,
            kind=QA_KIND if is_span else "remote",
            secret=secret or None,
            options={"passage_field": component.reference} if is_span else {},
            allow_private_hosts=tuple(settings.SUBMISSION_PRIVATE_HOSTS),
        ),
    )


@contextmanager
def predictions_file(submission: Submission) -> Iterator[IO[bytes]]:
    """The checked predictions, gzipped JSON lines: `{"id": uid, "output": {…}, "prob": {…}}`."""
    with submission.file.open("rb") as file:
        yield file


def _target_folder(submission: Submission) -> Path:
    """The files of a target, where the model server finds them too."""
    assert submission.target is not None
    try:
        return find_weights(spec_of(submission.target))[0]
    except MisconfiguredError as error:
        raise CannotFetch(str(error)) from None


def _image(submission: Submission, beat: Beat) -> str:
    """The image's id, once the engine has exactly what was checked.

    A name may stand for something else by now; the id cannot.
    """
    from evaluation.sandbox import (
        images as sandbox_images,  # brings Docker's library, which only images need
    )

    if sandbox_images.has_image(submission.digest):
        return submission.digest
    if submission.file:
        with scratch() as folder:
            archive = folder / "image.tar"
            with submission.file.open("rb") as stored, archive.open("wb") as copy:
                shutil.copyfileobj(Beating(stored, beat), copy, CHUNK)
            found = sandbox_images.load_image(archive)
    else:
        found = sandbox_images.pull_image(
            submission.source, settings.SUBMISSION_PRIVATE_HOSTS, beat
        )
    if found != submission.digest:
        raise CannotFetch(
            f"The image is {found} now, but {submission.digest} was checked. Hand it in again."
        )
    return found


@contextmanager
def _folder(submission: Submission, beat: Beat) -> Iterator[Path]:
    """The checked files of a model, in this machine's cache."""
    if not submission.file:
        raise CannotFetch(gettext_noop("The model's files are gone."))

    def fill(folder: Path) -> None:
        with submission.file.open("rb") as stored:
            unpack(stored, folder, beat)
        if digest_of(folder, beat) != submission.digest:
            raise CannotFetch(gettext_noop("The stored files are not those that were checked."))

    cache, most = settings.MODEL_CACHE, settings.MODEL_CACHE_BYTES
    with kept(cache, submission.digest, fill, most, beat) as folder:
        yield folder
