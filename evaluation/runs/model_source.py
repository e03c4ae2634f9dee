"""From a submission to a model that can be run on this machine, and the runner for it."""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext_noop

from dynabench.lib.encryption import Unreadable, decrypt
from dynabench.lib.scratch import scratch
from evaluation.contract import ENDPOINT_ADAPTERS, Beat, Runnable
from evaluation.heartbeat import CHUNK, BeatingFile
from evaluation.inference.requests import runnable
from evaluation.models import EvaluationRun, Submission
from evaluation.queue.attempt_keys import key_of
from evaluation.runs.model_cache import digest_of, kept, unpack
from evaluation.runs.selectors import is_remote
from evaluation.sandbox.choose import runner_for
from evaluation.sandbox.endpoint import EndpointRunner
from evaluation.sandbox.limits import Limits
from evaluation.sandbox.monitor import Runner
from tasks.models import TargetModel
from tasks.targets.connect import endpoint_of, spec_of
from tasks.targets.endpoints.base import QA_KIND, Endpoint, EndpointConfig
from tasks.targets.endpoints.registry import build
from tasks.targets.serving.errors import MisconfiguredError
from tasks.targets.serving.spec import find_weights

Kind = Submission.Kind


class CannotFetch(Exception):
    """A submission is not there as it was checked; the message says why."""


def machine_limits() -> Limits:
    """What a model may use on a whole set, as this installation has it."""
    return Limits.of_machine(
        settings.EVALUATION_MEMORY_GIB, settings.EVALUATION_CPUS, settings.EVALUATION_SECONDS
    )


@contextmanager
def model_of(
    submission: Submission, job: EvaluationRun | Submission, beat: Beat
) -> Iterator[tuple[Runnable, Runner]]:
    """The model of a submission, and the runner for it; both stay for as long as the block lasts.

    job: the claimed run or check for which it is run. Not for predictions, which need no runner.
    Raises CannotFetch, EndpointError, ImageRefused, NoEngine and what `beat` raises.
    """
    config = submission.task.config
    with ExitStack() as stack:
        if is_remote(submission):
            yield runnable(config), EndpointRunner(endpoint_for(submission))
            return
        if submission.kind == Kind.IMAGE:
            adapter = submission.adapter
            model = runnable(config, image=_image(submission, beat), adapter=adapter)
        elif submission.target:
            model = runnable(config, folder=_target_folder(submission.target))
        else:
            model = runnable(config, folder=stack.enter_context(_folder(submission, beat)))
        yield model, runner_for(model, key_of(job))


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
    asked = runnable(config)
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


def _target_folder(target: TargetModel) -> Path:
    """The files of a target, where the model server finds them too."""
    try:
        return find_weights(spec_of(target))[0]
    except MisconfiguredError as error:
        raise CannotFetch(str(error)) from None


def _image(submission: Submission, beat: Beat) -> str:
    """The image's id, once the engine has exactly what was checked.

    A name may stand for something else by now; the id cannot.
    """
    from evaluation.sandbox import images  # imports Docker's library, which only images need

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


def _folder(submission: Submission, beat: Beat) -> AbstractContextManager[Path]:
    """The checked files of a model, in this machine's cache."""
    if not submission.file:
        raise CannotFetch(gettext_noop("The model's files are gone."))

    def fill(folder: Path) -> None:
        with submission.file.open("rb") as stored:
            unpack(stored, folder, beat)
        if digest_of(folder, beat) != submission.digest:
            raise CannotFetch(gettext_noop("The stored files are not those that were checked."))

    cache, most = settings.MODEL_CACHE, settings.MODEL_CACHE_BYTES
    return kept(cache, submission.digest, fill, most, beat)
