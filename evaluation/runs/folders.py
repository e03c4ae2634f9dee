"""Folders of submitted models on this machine, and the bases of adapters."""

import fcntl
import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext_noop

from evaluation.contract import Beat, Runnable
from evaluation.heartbeat import call_with_beat
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.isolation.uploads.model_folders import MOST_BYTES, check_base, digest_folder
from evaluation.models import Submission
from evaluation.runs.endpoints import CannotFetch, compute_identity
from evaluation.runs.hub import fetch_public
from evaluation.runs.model_cache import open_cached_folder, unpack_folder
from evaluation.runs.selectors import find_base
from serving.errors import MisconfiguredError
from serving.spec import ModelSpec

ANY_GPU = "any"  # in place of a GPU's number: the node of the cluster puts its own there


def open_model_folder(submission: Submission, beat: Beat) -> AbstractContextManager[Path]:
    """Provide the checked files of a model in this machine's model cache."""
    if not submission.file:
        raise CannotFetch(gettext_noop("The model's files are gone."))

    def fill(folder: Path) -> None:
        with submission.file.open("rb") as stored:
            unpack_folder(stored, folder, beat)
        # The storage may be shared, or restored from an older copy.
        if compute_identity(submission, digest_folder(folder, beat)) != submission.digest:
            raise CannotFetch(gettext_noop("The stored files are not those that were checked."))

    cache, most = settings.MODEL_CACHE, settings.MODEL_CACHE_BYTES
    return open_cached_folder(cache, submission.digest, fill, most, beat)


@contextmanager
def equip_model(
    submission: Submission, model: Runnable, beat: Beat, *, is_elsewhere: bool = False
) -> Iterator[Runnable]:
    """Provide the model with what it needs besides its files: a GPU, or an adapter's base model.

    is_elsewhere: whether it runs on a cluster node, which chooses the GPU.
    Raises NoEngine, CannotFetch, Unavailable and the exceptions of `beat`.
    """
    with ExitStack() as stack:
        if _wants_gpu(submission):
            gpu = ANY_GPU  # this machine may have none
            if not is_elsewhere:
                gpu = stack.enter_context(_reserve_gpu())
            model = replace(model, gpu=gpu)
        if submission.base:
            base = stack.enter_context(_open_base(submission, beat))
            model = replace(model, folder=base, lora=model.folder)
        yield model


def _wants_gpu(submission: Submission) -> bool:
    if submission.target:
        return submission.target.gpus > 0
    return submission.gpus > 0


@contextmanager
def _reserve_gpu() -> Iterator[str]:
    """Reserve a GPU of this machine for the block, and yield its number. Raises NoEngine.

    The kernel holds the lock and releases it even if this process is killed.
    """
    places: Path = settings.MODEL_CACHE / "gpus"
    places.mkdir(parents=True, exist_ok=True)
    for number in range(settings.EVALUATION_GPUS):
        with (places / str(number)).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield str(number)
            return
    if not settings.EVALUATION_GPUS:
        raise NoEngine(gettext_noop("It waits for a GPU: this site has none now."))
    raise NoEngine(gettext_noop("It waits for a free GPU."))


def _open_base(submission: Submission, beat: Beat) -> AbstractContextManager[Path]:
    """Provide an adapter's base model: a model of this site, or a hub id at its commit."""
    if "@" not in submission.base:
        base = find_base(submission.task, submission.owner, UUID(submission.base))
        if base is None:
            raise CannotFetch(gettext_noop("The adapter's base was withdrawn."))
        return open_model_folder(base, beat)

    def fill(folder: Path) -> None:
        source, _, revision = submission.base.partition("@")
        try:
            # Beside the folder, so that the checked files are moved into their place at once.
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                spec = ModelSpec("The adapter's base", source, revision)
                call_with_beat(lambda: fetch_public(spec, Path(scratch, "base"), MOST_BYTES), beat)
                check_base(Path(scratch, "base")).replace(folder)
        except MisconfiguredError as error:
            raise CannotFetch(str(error)) from None

    name = f"base-{hashlib.sha256(submission.base.encode()).hexdigest()}"
    return open_cached_folder(settings.MODEL_CACHE, name, fill, settings.MODEL_CACHE_BYTES, beat)
