"""Heartbeats that keep the attempts of this process from counting as lost."""

import functools
import logging
import os
import threading
from collections.abc import Callable, Collection
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.utils import timezone

from annotation.models import Attempt

logger = logging.getLogger(__name__)

# Three renewals fit into a hold, so one that fails does not lose the attempt.
RENEW_SECONDS = 3.0
LEASE_TIME = timedelta(seconds=10)
# A page waits first, and only then a thread begins to renew the attempt.
FIRST_LEASE_TIME = timedelta(seconds=settings.LIVE_WAIT_SECONDS) + LEASE_TIME
"""How long a new attempt does not count as lost before its process first renews the lease."""


def renew_attempts(attempt_ids: Collection[int]) -> None:
    """Extend the lease of attempts whose targets this process is still asking.

    Takes no lock: an attempt that has ended is not changed.
    """
    asking_attempts = Attempt.objects.filter(pk__in=attempt_ids, state=Attempt.State.ASKING)
    # Only those still asking: an attempt that ended meanwhile stays ended.
    asking_attempts.update(held_until=timezone.now() + LEASE_TIME)


class LeaseRenewer:
    """A registry of attempts in progress. A thread renews their leases until none is left.

    renew: a function that extends the leases. pause: waits between two renewals.
    """

    def __init__(
        self, renew: Callable[[Collection[int]], None], pause: Callable[[], object]
    ) -> None:
        self._renew, self._pause = renew, pause
        self._held_ids: set[int] = set()
        # For the other two fields, which requests and the renewing thread both change.
        self._lock = threading.Lock()
        self._is_running = False

    def start_renewing(self, pk: int) -> None:
        """Renew the attempt's lease until `stop_renewing` is called."""
        with self._lock:
            self._held_ids.add(pk)
            if not self._is_running:
                self._is_running = True
                # A daemon, so that a process can end while targets still answer.
                threading.Thread(target=self._run, name="attempts", daemon=True).start()

    def stop_renewing(self, pk: int) -> None:
        """Stop renewing the attempt's lease."""
        with self._lock:
            self._held_ids.discard(pk)

    def _run(self) -> None:
        # First a pause: what begins to be held is good for longer than that.
        self._pause()
        while attempt_ids := self._get_ids_or_end():
            try:
                self._renew(attempt_ids)
            except Exception:  # the database may be away for a moment
                logger.exception("attempts could not be held")
            self._pause()

    def _get_ids_or_end(self) -> frozenset[int]:
        """Return the ids of the attempts in progress, or end the thread if there are none.

        The next `start_renewing` starts another thread.
        """
        with self._lock:
            # Under the same lock as `start_renewing`, so that no attempt is added to a thread that
            # ends.
            self._is_running = bool(self._held_ids)
            return frozenset(self._held_ids)


def _renew_and_disconnect(attempt_ids: Collection[int]) -> None:
    try:
        renew_attempts(attempt_ids)
    finally:
        # The thread's own connection, which no request closes.
        connection.close()


@functools.cache
def get_lease_renewer() -> LeaseRenewer:
    """Return the lease renewer of this process; a forked child creates its own."""
    return LeaseRenewer(
        _renew_and_disconnect, functools.partial(threading.Event().wait, RENEW_SECONDS)
    )


# A child has none of its parent's threads, so with a copied renewer nothing would be renewed.
os.register_at_fork(after_in_child=get_lease_renewer.cache_clear)
