"""What queue workers do for webhooks, each minute."""

import time

from dynabench.notices.services import renew_and_tell
from dynabench.webhooks.delivery import note_events, purge, send_due

MOST_SECONDS = 45.0
"""After that, what is due waits for the next call, so that evaluations get their worker."""


def deliver_due() -> int:
    """Notice what owners should know, and tell webhooks what happened; returns how many tries.

    It may be called at any time, by several workers at once.
    """
    renew_and_tell()
    stop, sent = time.monotonic() + MOST_SECONDS, 0
    note_events()
    while time.monotonic() < stop and (taken := send_due()):
        sent += taken
    purge()
    return sent
