"""The removal of what killed workers leave: containers and temporary folders; and old uploads."""

import logging
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from django.core.files.storage import default_storage
from django.db.models import Q
from django.utils import timezone

from core.files.storage.disk import remove_abandoned
from core.files.storage.stored import files_in, folders_in
from core.periodic import each_sweep
from evaluation.isolation.queue.attempt_keys import (
    MAX_RUN_TIME,
    TEMPORARY_PREFIX,
    installation_key,
    is_needed,
)
from evaluation.isolation.sandbox import containers
from evaluation.isolation.sandbox.engine import EngineError
from evaluation.isolation.sandbox.images import remove_nameless
from evaluation.isolation.uploads.chunked import purge_old_uploads
from evaluation.kinds import kind_names
from evaluation.models import EvaluationSetVersion, Submission
from evaluation.models.evaluation_sets import SETS
from evaluation.models.jobs import UNFINISHED

logger = logging.getLogger(__name__)


@each_sweep(why="Dead workers leave containers, images and files behind.")
def tidy() -> int:
    """Remove unneeded containers, images, folders, files and uploads; return how many.

    Covers this machine and the storage.
    """
    return (
        _remove_containers()
        + _remove_images()
        + _remove_folders()
        + _remove_set_files()
        + remove_abandoned()
        + purge_old_uploads()
    )


def _remove_containers() -> int:
    """Remove containers whose attempt has lost its lease; return how many.

    Takes no lock.
    """
    removed_count = 0
    try:
        for container in containers.list_ours(installation_key()):
            if not is_needed(container.key):
                containers.remove_container(container.name)
                logger.warning("Removed the container %s: no worker has its run.", container.name)
                removed_count += 1
    except EngineError:
        pass  # no engine here, or it is down: nothing runs on it
    return removed_count


def _remove_images() -> int:
    """Remove submitted images that no job needs; return how many. A later run loads them again.

    Takes no lock.
    """
    images = kind_names(lambda kind: kind.is_image)
    submissions = Submission.objects.filter(kind__in=images).exclude(digest="")
    under_way = (
        Q(state__in=UNFINISHED)
        | Q(runs__state__in=UNFINISHED)
        | Q(practice_runs__state__in=UNFINISHED)
    )
    needed_digests = set(submissions.filter(under_way).values_list("digest", flat=True))
    idle_digests = set(submissions.values_list("digest", flat=True)) - needed_digests
    if not idle_digests:  # called every half minute: the engine is not asked for nothing
        return 0
    try:
        removed_ids = remove_nameless(idle_digests)
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
            if folder.stat().st_mtime < oldest_time:  # a run that lives writes into its folder
                shutil.rmtree(folder, ignore_errors=True)
                removed_count += 1
    return removed_count


def _remove_set_files() -> int:
    """Remove files of evaluation sets that belong to no version; return how many.

    Such files remain when a process is killed while it makes a version. Takes no lock.
    """
    named_paths = set()
    for inputs, gold in EvaluationSetVersion.objects.values_list("inputs", "gold"):
        named_paths |= {inputs, gold}
    # Only old ones: a version that is being made has its files before its row.
    oldest_time, removed_count = timezone.now() - MAX_RUN_TIME, 0
    for folder in folders_in(SETS):
        for path in files_in(f"{SETS}/{folder}"):
            with suppress(FileNotFoundError):  # another worker was first
                if (
                    path not in named_paths
                    and default_storage.get_modified_time(path) < oldest_time
                ):
                    default_storage.delete(path)
                    removed_count += 1
    return removed_count
