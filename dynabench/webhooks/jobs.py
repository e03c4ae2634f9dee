"""The work of queue workers for webhooks, each minute."""

import time

from core.periodic import minutely
from dynabench.notices.services import renew_and_tell
from dynabench.webhooks.delivery import note_events, purge_deliveries, send_due

MOST_SECONDS = 45.0
"""Then due deliveries wait for the next call, so that evaluations get a worker."""


@minutely(counts="deliveries tried", why="Webhooks and owners are told what happened.")
def deliver_due() -> int:
    """Deliver events to webhooks; return how many deliveries were tried.

    1. Update notices, which are also events, and send digests.
    2. Store a delivery of each new event.
    3. Send the due deliveries, for at most MOST_SECONDS.
    4. Delete old deliveries.

    Several workers may run this at the same time.
    """
    renew_and_tell()
    stop = time.monotonic() + MOST_SECONDS
    note_events()
    tried_count = 0
    # A batch at a time, as other workers send meanwhile.
    while time.monotonic() < stop:
        claimed_count = send_due()
        if not claimed_count:
            break
        tried_count += claimed_count
    purge_deliveries()
    return tried_count
