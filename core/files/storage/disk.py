"""Temporary folders on this machine, and checks of free disk space.

Folders left behind by killed processes are found and removed.
"""

import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from django.conf import settings

from core.errors import Unavailable
from core.text.words import gettext_noop

logger = logging.getLogger(__name__)

NO_ROOM_MESSAGE = gettext_noop(
    "The server is out of storage space. Try again later, or ask the site's operator."
)
WAIT_SECONDS = 600
MIN_AGE_SECONDS = 60.0  # its maker may not have locked it yet
MAX_FORM_FILE_SECONDS = 3600.0  # that a file of a form lies here unchanged while somebody reads it


def check_free_space(size_bytes: int) -> None:
    """Raise Unavailable if `size_bytes` more would leave less than DISK_RESERVE_BYTES free.

    Checks the disks of the spool and of the stored files, through both of which a file passes.
    """
    # They may lie on different disks, and a file passes through both.
    for folder in {Path(settings.SPOOL), Path(settings.MEDIA_ROOT)}:
        # A folder is made with its first file; until then its parent is on the same disk.
        existing_folder = next(path for path in (folder, *folder.parents) if path.exists())
        free_bytes = shutil.disk_usage(existing_folder).free
        if free_bytes - size_bytes < settings.DISK_RESERVE_BYTES:
            logger.error("No room for %d bytes: %s has %d free.", size_bytes, folder, free_bytes)
            raise Unavailable(NO_ROOM_MESSAGE, status=507, wait=WAIT_SECONDS)


@contextmanager
def open_scratch_folder() -> Iterator[Path]:
    """Create a temporary folder, yield its path, and delete it when the context ends.

    A lock marks the folder as in use.
    """
    folder = Path(mkdtemp(dir=settings.SPOOL))
    handle = os.open(folder, os.O_RDONLY)
    try:
        # The kernel frees it however the process ends, also by SIGKILL.
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned_folders() -> int:
    """Delete the folders of ended processes, and old form uploads; return how many."""
    removed_count = 0
    for path in Path(settings.SPOOL).iterdir():
        with suppress(FileNotFoundError):  # its maker was faster
            removed_count += _remove_if_abandoned(path, time.time() - path.stat().st_mtime)
    return removed_count


def _remove_if_abandoned(path: Path, age_seconds: float) -> bool:
    # Django makes the files of forms itself and locks none, so their age decides.
    if not path.is_dir():
        is_old = age_seconds > MAX_FORM_FILE_SECONDS
        if is_old:
            path.unlink()
        return is_old
    # A folder exists for a moment before its process locks it.
    if age_seconds < MIN_AGE_SECONDS:
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    # A living process holds the lock.
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True
