"""Provide folders of submitted models on this machine, and the bases of adapters."""

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

from evaluation.contract import BeatCallback, Runnable
from evaluation.heartbeat import call_with_beat
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.isolation.uploads.model_folders import (
    MAX_FOLDER_BYTES,
    check_base_model,
    digest_folder,
)
from evaluation.models import Submission
from evaluation.runs.endpoints import CannotFetch, compute_identity
from evaluation.runs.hub import fetch_public_model
from evaluation.runs.model_cache import open_cached_folder, unpack_folder
from evaluation.runs.selectors import find_base
from serving.errors import MisconfiguredError
from serving.spec import ModelSpec

ANY_GPU = "any"  # in place of a GPU's number, which the cluster's node inserts


def open_model_folder(submission: Submission, beat: BeatCallback) -> AbstractContextManager[Path]:
    """Provide the checked files of a model in this machine's model cache.

    They are unpacked first if the cache lacks them. Raises CannotFetch if the stored files are gone
    or are not those that were checked, and the exceptions of `beat`.
    """
    if not submission.file:
        raise CannotFetch(
            gettext_noop("The model's files have been deleted. Submit the model again.")
        )

    def fill(folder: Path) -> None:
        with submission.file.open("rb") as stored_file:
            unpack_folder(stored_file, folder, beat)
        # The storage may be shared, or restored from an older copy.
        if compute_identity(submission, digest_folder(folder, beat)) != submission.digest:
            raise CannotFetch(
                gettext_noop(
                    "The stored files differ from the files we checked. Submit the model again."
                )
            )

    cache, max_bytes = settings.MODEL_CACHE, settings.MODEL_CACHE_BYTES
    return open_cached_folder(cache, submission.digest, fill, max_bytes, beat)


@contextmanager
def equip_model(
    submission: Submission, model: Runnable, beat: BeatCallback, *, is_elsewhere: bool = False
) -> Iterator[Runnable]:
    """Provide the model with what it needs besides its files: a GPU, or an adapter's base model.

    is_elsewhere: whether it runs on a cluster node, which chooses the GPU.
    Raises NoEngine, CannotFetch, Unavailable and the exceptions of `beat`.
    """
    with ExitStack() as stack:
        if _needs_gpu(submission):
            gpu = ANY_GPU  # this machine may have none
            if not is_elsewhere:
                gpu = stack.enter_context(_reserve_gpu())
            model = replace(model, gpu=gpu)
        if submission.base:
            base = stack.enter_context(_open_base(submission, beat))
            model = replace(model, folder=base, lora=model.folder)
        yield model


def _needs_gpu(submission: Submission) -> bool:
    if submission.target:
        return submission.target.gpus > 0
    return submission.gpus > 0


@contextmanager
def _reserve_gpu() -> Iterator[str]:
    """Reserve a GPU of this machine for the block, and yield its number. Raises NoEngine.

    The kernel holds the lock and releases it even if this process is killed.
    """
    locks_folder: Path = settings.MODEL_CACHE / "gpus"
    locks_folder.mkdir(parents=True, exist_ok=True)
    for number in range(settings.EVALUATION_GPUS):
        with (locks_folder / str(number)).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield str(number)
            return
    if not settings.EVALUATION_GPUS:
        raise NoEngine(gettext_noop("Waiting for a GPU. This site has none right now."))
    raise NoEngine(gettext_noop("Waiting for a free GPU."))


def _open_base(submission: Submission, beat: BeatCallback) -> AbstractContextManager[Path]:
    """Provide an adapter's base model: a model of this site, or a hub id at its commit.

    Raises CannotFetch.
    """
    if "@" not in submission.base:
        base = find_base(submission.task, submission.owner, UUID(submission.base))
        if base is None:
            raise CannotFetch(
                gettext_noop(
                    "The adapter's base model has been withdrawn. Submit the adapter with "
                    "another base model."
                )
            )
        return open_model_folder(base, beat)

    def fill(folder: Path) -> None:
        source, _, revision = submission.base.partition("@")
        try:
            # Next to the folder, so that the checked files are moved into place at once.
            with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
                spec = ModelSpec("The adapter's base", source, revision)
                call_with_beat(
                    lambda: fetch_public_model(spec, Path(scratch, "base"), MAX_FOLDER_BYTES), beat
                )
                check_base_model(Path(scratch, "base")).replace(folder)
        except MisconfiguredError as error:
            raise CannotFetch(str(error)) from None

    name = f"base-{hashlib.sha256(submission.base.encode()).hexdigest()}"
    return open_cached_folder(settings.MODEL_CACHE, name, fill, settings.MODEL_CACHE_BYTES, beat)
