"""The minutely job that delivers events to webhooks."""

import time

from core.periodic import register_minutely
from dynabench.notices.digest_services import renew_notices_and_send_digests
from dynabench.webhooks.delivery import purge_deliveries, send_due_deliveries, store_new_deliveries

MAX_SECONDS = 45.0
"""For how many seconds the job sends deliveries. Others wait, so that evaluations get a worker."""


@register_minutely(counts="deliveries tried", why="Tells webhooks and owners what happened.")
def deliver_due() -> int:
    """Deliver events to webhooks; return how many deliveries were tried.

    1. Update notices, which are also events, and send digests.
    2. Store a delivery of each new event.
    3. Send the due deliveries, for at most MAX_SECONDS.
    4. Delete old deliveries.

    Several workers may run this at the same time.
    """
    renew_notices_and_send_digests()
    stop = time.monotonic() + MAX_SECONDS
    store_new_deliveries()
    tried_count = 0
    # A batch at a time, as other workers send meanwhile.
    while time.monotonic() < stop:
        claimed_count = send_due_deliveries()
        if not claimed_count:
            break
        tried_count += claimed_count
    purge_deliveries()
    return tried_count
