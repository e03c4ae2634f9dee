"""Removes what killed workers leave behind: containers and temporary folders; and old uploads."""

import hashlib
import logging
import shutil
import tempfile
import time
import uuid
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection
from django.db.models import Q
from django.utils import timezone

from dynabench.lib.scratch import remove_abandoned
from evaluation.models import EvaluationRun, EvaluationSetVersion, Submission
from evaluation.models.evaluation_sets import SETS
from evaluation.sandbox import containers
from evaluation.sandbox.engine import EngineError
from evaluation.sandbox.images import remove_nameless
from evaluation.uploads.chunked import purge_old_uploads

logger = logging.getLogger(__name__)

TEMPORARY = "dynabench-run-"
BY_HAND = "hand"  # in place of a run's id: no row tells whether it still runs
UNFINISHED = (EvaluationRun.State.QUEUED, EvaluationRun.State.RUNNING)
LONG = timedelta(days=1)  # longer than any run


def installation() -> str:
    """Tells this installation's containers from others', and from tests', on the same engine."""
    database = connection.settings_dict
    told = f"{settings.SECRET_KEY}/{database['HOST']}/{database['PORT']}/{database['NAME']}"
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def run_key(run: EvaluationRun | Submission) -> str:
    """The key of a claimed run's or check's container: of this attempt alone, as its lease is."""
    assert run.lease_token is not None
    return f"{installation()}-{run.pk.hex}-{run.lease_token.hex}"


def key_by_hand() -> str:
    """The key of a container that belongs to no run of ours; it may live for LONG."""
    return f"{installation()}-{BY_HAND}-{int(time.time())}-{uuid.uuid4().hex[:8]}"


def tidy() -> int:
    """Remove on this machine and in the storage what nobody needs; returns how many things."""
    return (
        _containers()
        + _images()
        + _folders()
        + _set_files()
        + remove_abandoned()
        + purge_old_uploads()
    )


def _containers() -> int:
    """Containers whose run is not leased, or leased by another attempt. No lock."""
    removed = 0
    try:
        for ours in containers.list_ours(installation()):
            if not _is_needed(ours.key):
                containers.remove(ours.name)
                logger.warning("Removed the container %s: no worker has its run.", ours.name)
                removed += 1
    except EngineError:
        pass  # no engine here, or it is down: nothing runs on it
    return removed


def _images() -> int:
    """Submitted images of which nothing waits or runs; a later run loads them again. No lock."""
    handed_in = Submission.objects.filter(kind=Submission.Kind.IMAGE).exclude(digest="")
    under_way = Q(state__in=UNFINISHED) | Q(runs__state__in=UNFINISHED)
    needed = set(handed_in.filter(under_way).values_list("digest", flat=True))
    idle = set(handed_in.values_list("digest", flat=True)) - needed
    try:
        removed = remove_nameless(idle) if idle else []  # each minute: ask the engine if need be
    except EngineError:
        return 0
    return len(removed)


def _is_needed(key: str) -> bool:
    _, run, attempt, *_ = key.split("-")
    if run == BY_HAND:
        return time.time() - int(attempt) < LONG.total_seconds()
    leased = {
        "pk": uuid.UUID(run),
        "state": EvaluationRun.State.RUNNING,
        "lease_token": uuid.UUID(attempt),
        "lease_until__gte": timezone.now(),
    }
    return any(
        kind._default_manager.filter(**leased).exists() for kind in (EvaluationRun, Submission)
    )


def _folders() -> int:
    """Temporary folders of runs on this machine; those alive are changed more often."""
    old, removed = time.time() - LONG.total_seconds(), 0
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        with suppress(FileNotFoundError):  # its run has just ended
            if folder.stat().st_mtime < old:
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
    return removed


def _set_files() -> int:
    """Files of evaluation sets that no version names: who made one was killed. No lock."""
    sets = default_storage.listdir(SETS)[0] if default_storage.exists(SETS) else []
    pairs = EvaluationSetVersion.objects.values_list("inputs", "gold")
    named = {name for pair in pairs for name in pair}
    old, removed = timezone.now() - LONG, 0
    for one in sets:
        for name in default_storage.listdir(f"{SETS}/{one}")[1]:
            path = f"{SETS}/{one}/{name}"
            with suppress(FileNotFoundError):  # another janitor was first
                if path not in named and default_storage.get_modified_time(path) < old:
                    default_storage.delete(path)
                    removed += 1
    return removed
