"""Fetch submitted models from the hub, without the operator's token and only if they fit."""

import shutil
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from core.errors import Unavailable
from core.files.storage.disk import check_free_space
from evaluation.contract import GIB
from serving.errors import MisconfiguredError
from serving.hub import REQUEST_SECONDS, explain_hub_failure, set_hub_timeouts
from serving.spec import HUB_FILE_PATTERNS, ModelSpec, check_hub_source


def _is_downloaded(name: str) -> bool:
    """Return whether the hub's file with this name is downloaded."""
    return any(fnmatch(name, pattern) for pattern in HUB_FILE_PATTERNS)


def fetch_public_model(spec: ModelSpec, target_folder: Path, max_bytes: int) -> Path:
    """Download the files of a hub id at its commit into a new folder, and return the folder.

    Downloads only files that match HUB_FILE_PATTERNS, after asking the hub for their sizes. The
    operator's token is not sent, so that nobody gets models that only the operator may read.
    max_bytes: the total size above which the model is refused.
    Raises MisconfiguredError, HubUnavailableError and Unavailable.
    """
    check_hub_source(spec)
    from huggingface_hub import HfApi, snapshot_download

    set_hub_timeouts()  # the Hub's client would wait forever
    repo: dict[str, Any] = {"repo_id": spec.source, "revision": spec.revision, "token": False}
    try:
        files = (
            HfApi().model_info(**repo, files_metadata=True, timeout=REQUEST_SECONDS).siblings or []
        )
        size = sum(file.size or 0 for file in files if _is_downloaded(file.rfilename))
        if size > max_bytes:
            raise MisconfiguredError(
                f"The model's files on the hub have {size / GIB:.2f} GiB; at most "
                f"{max_bytes / GIB:.2f} GiB are taken."
            )
        check_free_space(size)  # checked before the first byte, not when the disk is full
        snapshot_download(**repo, allow_patterns=HUB_FILE_PATTERNS, local_dir=target_folder)
    except (MisconfiguredError, Unavailable):
        raise
    except Exception as error:  # the Hub's client raises many kinds of errors
        failure = explain_hub_failure(spec.name, spec.source, error)
        if failure is None:
            raise
        raise failure from error
    shutil.rmtree(target_folder / ".cache", ignore_errors=True)  # the client's notes
    return target_folder
