"""Heartbeats of the attempts whose targets this process asks, so that they do not count as lost."""

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
HOLD = timedelta(seconds=10)
# A page waits first, and only then a thread begins to renew the attempt.
FIRST_HOLD = timedelta(seconds=settings.LIVE_WAIT_SECONDS) + HOLD
"""An attempt counts as lost after this time unless the asking process renews it."""


def hold_attempts(pks: Collection[int]) -> None:
    """Extend the lease of attempts that this process is still asking, by a conditional update."""
    asking = Attempt.objects.filter(pk__in=pks, state=Attempt.State.ASKING)
    # Only those still asking: an attempt that ended meanwhile stays ended.
    asking.update(held_until=timezone.now() + HOLD)


class Holder:
    """A registry of attempts in progress, whose thread renews their leases until none is left."""

    def __init__(
        self, renew: Callable[[Collection[int]], None], pause: Callable[[], object]
    ) -> None:
        self._renew, self._pause = renew, pause
        self._held: set[int] = set()
        self._lock = threading.Lock()
        self._is_running = False

    def hold(self, pk: int) -> None:
        """Renew the attempt's lease until `let_go` is called."""
        with self._lock:
            self._held.add(pk)
            if not self._is_running:
                self._is_running = True
                # A daemon, so that a process can end while targets still answer.
                threading.Thread(target=self._run, name="attempts", daemon=True).start()

    def let_go(self, pk: int) -> None:
        """Stop renewing the attempt's lease."""
        with self._lock:
            self._held.discard(pk)

    def _run(self) -> None:
        # First a pause: what begins to be held is good for longer than that.
        self._pause()
        while attempt_ids := self._or_end():
            try:
                self._renew(attempt_ids)
            except Exception:  # the database may be away for a moment
                logger.exception("attempts could not be held")
            self._pause()

    def _or_end(self) -> frozenset[int]:
        """Return the held attempts, or end the thread if there are none.

        The next `hold` starts another thread.
        """
        with self._lock:
            # Under the same lock as `hold`, so that no attempt is added to a thread that ends.
            self._is_running = bool(self._held)
            return frozenset(self._held)


def _renewed(pks: Collection[int]) -> None:
    try:
        hold_attempts(pks)
    finally:
        # The thread's own connection, which no request closes.
        connection.close()


@functools.cache
def holder() -> Holder:
    """Return the holder of this process; a forked child creates its own."""
    return Holder(_renewed, functools.partial(threading.Event().wait, RENEW_SECONDS))


# A child has none of its parent's threads, so with a copied holder nothing would be renewed.
os.register_at_fork(after_in_child=holder.cache_clear)
