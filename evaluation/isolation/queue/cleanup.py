"""Remove what killed workers leave: containers, images, files, folders. Also purge old uploads."""

import logging
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from django.core.files.storage import default_storage
from django.db.models import Q
from django.utils import timezone

from core.files.storage.disk import remove_abandoned_folders
from core.files.storage.stored import list_files, list_folders
from core.periodic import register_sweep
from evaluation.isolation.queue.attempt_keys import (
    MAX_RUN_TIME,
    TEMPORARY_PREFIX,
    get_installation_key,
    is_attempt_current,
)
from evaluation.isolation.sandbox import containers
from evaluation.isolation.sandbox.engine import EngineError
from evaluation.isolation.sandbox.images import remove_unnamed_images
from evaluation.isolation.uploads.chunked import purge_old_uploads
from evaluation.kinds import list_kind_names
from evaluation.models import EvaluationSetVersion, Submission
from evaluation.models.evaluation_sets import SETS_FOLDER
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.questions import list_program_digests

logger = logging.getLogger(__name__)


@register_sweep(why="Dead workers leave containers, images and files behind.")
def remove_leftovers() -> int:
    """Remove unneeded containers, images, folders, files and uploads; return how many.

    Covers this machine and the storage.
    """
    return (
        _remove_containers()
        + _remove_images()
        + _remove_folders()
        + _remove_orphaned_set_files()
        + remove_abandoned_folders()
        + purge_old_uploads()
    )


def remove_all_containers() -> int:
    """Remove all containers of this installation on this machine; return how many.

    For when its last worker here has ended: the leases of killed workers last for two minutes.
    """
    return _remove_containers(is_everything_over=True)


def _remove_containers(*, is_everything_over: bool = False) -> int:
    """Remove containers whose attempt has lost its lease; return how many.

    is_everything_over: remove those of attempts with a lease, too. Takes no lock.
    """
    removed_count = 0
    try:
        for container in containers.list_own_containers(get_installation_key()):
            if is_everything_over or not is_attempt_current(container.key):
                containers.remove_container(container.name)
                logger.warning("Removed the container %s: no worker has its run.", container.name)
                removed_count += 1
    except EngineError:
        pass  # no engine here, or it is down, so nothing runs on it
    return removed_count


def _remove_images() -> int:
    """Remove images of models and programs that no job needs; return how many.

    A later run loads them again. Takes no lock.
    """
    image_kinds = list_kind_names(lambda kind: kind.is_image)
    submissions = Submission.objects.filter(kind__in=image_kinds).exclude(digest="")
    unfinished_submissions = (
        Q(state__in=UNFINISHED_STATES)
        | Q(runs__state__in=UNFINISHED_STATES)
        | Q(practice_runs__state__in=UNFINISHED_STATES)
    )
    needed_digests = set(
        submissions.filter(unfinished_submissions).values_list("digest", flat=True)
    )
    # A model and a program may have the same image, so both are read before one is removed.
    needed_digests |= list_program_digests(is_needed=True)
    all_digests = set(submissions.values_list("digest", flat=True))
    idle_digests = (all_digests | list_program_digests(is_needed=False)) - needed_digests
    if not idle_digests:  # called every half minute, so avoid needless calls to the engine
        return 0
    try:
        removed_ids = remove_unnamed_images(idle_digests)
    except EngineError:
        return 0
    return len(removed_ids)


def _remove_folders() -> int:
    """Remove old temporary folders of runs on this machine; return how many.

    Folders of current runs are not old, because runs write into them.
    """
    oldest_time, removed_count = time.time() - MAX_RUN_TIME.total_seconds(), 0
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY_PREFIX}*"):
        with suppress(FileNotFoundError):  # its run has just ended
            if folder.stat().st_mtime < oldest_time:  # a live run writes into its folder
                shutil.rmtree(folder, ignore_errors=True)
                removed_count += 1
    return removed_count


def _remove_orphaned_set_files() -> int:
    """Remove files of evaluation sets that belong to no version; return how many.

    Such files remain when a process is killed while it makes a version. Takes no lock.
    """
    named_paths = set()
    for inputs, gold in EvaluationSetVersion.objects.values_list("inputs", "gold"):
        named_paths |= {inputs, gold}
    # Only old ones, because a new version has its files before its row.
    oldest_time, removed_count = timezone.now() - MAX_RUN_TIME, 0
    for folder in list_folders(SETS_FOLDER):
        for path in list_files(f"{SETS_FOLDER}/{folder}"):
            with suppress(FileNotFoundError):  # another worker was first
                if (
                    path not in named_paths
                    and default_storage.get_modified_time(path) < oldest_time
                ):
                    default_storage.delete(path)
                    removed_count += 1
    return removed_count
