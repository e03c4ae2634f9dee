"""Limit how many threads of a web process wait for one outside service, such as a bucket."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

PATIENCE_SECONDS = 1.0
"""How long a request waits for a free slot before the service counts as hanging."""
_max_threads: int | None = None


def limit_waiting_threads(max_threads: int | None) -> None:
    """Set how many threads of this process may wait for one service. None means no limit.

    This applies only to `ThreadSlots` that are created later.
    """
    global _max_threads
    _max_threads = max_threads


def is_web_process() -> bool:
    """Return whether this process serves web requests."""
    return _max_threads is not None


class ServiceHanging(Exception):
    """Raised if too many threads are already waiting for a service that does not respond."""


class ThreadSlots:
    """A limited number of slots for threads that wait for one outside service.

    A fast service frees its slots at once, so the limit is not noticed. While the service hangs,
    further threads are refused immediately, until a call succeeds again.
    """

    def __init__(self) -> None:
        # The worker sets it before it loads the site, whose modules make their slots.
        self._max_threads = _max_threads
        self._free_slots = BoundedSemaphore(_max_threads or 1)
        self._is_hanging = False

    @contextmanager
    def take_slot(self) -> Iterator[None]:
        """Hold a slot within the context. Raises ServiceHanging if none becomes free."""
        if self._max_threads is None:
            yield
            return
        # No lock: at worst one more thread waits for a second, or one more call is refused.
        if not self._free_slots.acquire(timeout=0 if self._is_hanging else PATIENCE_SECONDS):
            self._is_hanging = True
            raise ServiceHanging
        try:
            yield
            self._is_hanging = False
        finally:
            self._free_slots.release()
