"""This machine's disk: temporary folders, and room, which is looked at before much is stored.

Folders that a killed process left are found and removed.
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

NO_ROOM = gettext_noop(
    "The server has no room for it at present. Try again later; the operator has to make room."
)
WAIT_SECONDS = 600
YOUNG_SECONDS = 60.0  # its maker may not have locked it yet
LONGEST_SECONDS = 3600.0  # that a file of a form lies here unchanged while somebody reads it


def check_room(size: int) -> None:
    """Raise Unavailable if storing `size` bytes would leave less free space than the reserve."""
    # They may lie on different disks, and a file passes through both.
    for folder in {Path(settings.SPOOL), Path(settings.MEDIA_ROOT)}:
        # A folder is made with its first file; until then its parent is on the same disk.
        here = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(here).free
        if free - size < settings.DISK_RESERVE_BYTES:
            logger.error("No room for %d bytes: %s has %d free.", size, folder, free)
            raise Unavailable(NO_ROOM, status=507, wait=WAIT_SECONDS)


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a temporary folder. A lock on it shows that its process is alive."""
    folder = Path(mkdtemp(dir=settings.SPOOL))
    handle = os.open(folder, os.O_RDONLY)
    try:
        # The kernel frees it however the process ends, also by SIGKILL.
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(handle)
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned() -> int:
    """Delete folders of ended processes, and old form uploads; return how many."""
    removed_count = 0
    for path in Path(settings.SPOOL).iterdir():
        with suppress(FileNotFoundError):  # its maker was faster
            removed_count += _remove(path, time.time() - path.stat().st_mtime)
    return removed_count


def _remove(path: Path, age: float) -> bool:
    # Django makes the files of forms itself and locks none, so their age decides.
    if not path.is_dir():
        is_old = age > LONGEST_SECONDS
        if is_old:
            path.unlink()
        return is_old
    if age < YOUNG_SECONDS:
        return False
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True
