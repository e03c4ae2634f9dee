"""Submitted models of the hub: fetched without the operator's token, and only if they fit."""

import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from core.errors import Unavailable
from core.files.storage.disk import check_room
from evaluation.contract import GIB
from serving.errors import MisconfiguredError
from serving.hub import SECONDS, bound_waiting, hub_failure
from serving.spec import HUB_FILES, ModelSpec, check_pinned


def _is_wanted(name: str) -> bool:
    """Return whether a file of the hub is downloaded, judging by its name."""
    return any(fnmatch(name, pattern) for pattern in HUB_FILES)


def fetch_public(spec: ModelSpec, into: Path, most_bytes: int) -> Path:
    """Download the files of a hub id at its commit into the new folder `into`, and return it.

    Only files named in HUB_FILES, after asking the hub for their sizes. The operator's token is
    not sent, so that nobody gets models that only the operator may read.
    Raises MisconfiguredError, HubAwayError and Unavailable.
    """
    check_pinned(spec)
    from huggingface_hub import HfApi, snapshot_download

    bound_waiting()  # the hub's client would wait without end
    repo: dict[str, Any] = {"repo_id": spec.source, "revision": spec.revision, "token": False}
    try:
        files = HfApi().model_info(**repo, files_metadata=True, timeout=SECONDS).siblings or []
        size = sum(file.size or 0 for file in files if _is_wanted(file.rfilename))
        if size > most_bytes:
            raise MisconfiguredError(
                f"The model's files on the hub have {size / GIB:.2f} GiB; at most "
                f"{most_bytes / GIB:.2f} GiB are taken."
            )
        check_room(size)  # before the first byte, not when the disk is full
        snapshot_download(**repo, allow_patterns=HUB_FILES, local_dir=into)
    except (MisconfiguredError, Unavailable):
        raise
    except Exception as error:  # the hub's client raises many kinds
        failure = hub_failure(spec.name, spec.source, error)
        if failure is None:
            raise
        raise failure from error
    shutil.rmtree(into / ".cache", ignore_errors=True)  # the client's notes
    return into
