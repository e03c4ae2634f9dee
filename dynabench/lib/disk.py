"""Room on this machine's disk: looked at before much is stored."""

import logging
import shutil
from pathlib import Path

from django.conf import settings

from dynabench.lib.errors import Unavailable
from dynabench.lib.words import gettext_noop

logger = logging.getLogger(__name__)

NO_ROOM = gettext_noop(
    "The server has no room for it at present. Try again later; the operator has to make room."
)
WAIT_SECONDS = 600


def check_room(size: int) -> None:
    """Raises Unavailable where `size` bytes would leave less than the reserve."""
    for folder in {Path(settings.SPOOL), Path(settings.MEDIA_ROOT)}:
        here = next(path for path in (folder, *folder.parents) if path.exists())
        free = shutil.disk_usage(here).free
        if free - size < settings.DISK_RESERVE_BYTES:
            logger.error("No room for %d bytes: %s has %d free.", size, folder, free)
            raise Unavailable(NO_ROOM, status=507, wait=WAIT_SECONDS)
