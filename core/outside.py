"""Parts that others run, such as a bucket: how many threads of a web process may wait for each."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

PATIENCE_SECONDS = 1.0
"""How long a request waits for a free place before the part counts as hanging."""
_most: int | None = None


def limit_waiting(max_threads: int | None) -> None:
    """Set how many threads of this process may wait for one service; None for no limit."""
    global _most
    _most = max_threads


def serves_requests() -> bool:
    """Return whether this process serves web requests."""
    return _most is not None


class Hanging(Exception):
    """Raised if the maximum number of threads already waits for a service that does not respond."""


class Places:
    """A limit on the threads that wait for one outside service.

    A fast service frees its places at once, so the limit is not noticed. While one hangs, further
    threads are refused immediately, until a call succeeds again.
    """

    def __init__(self) -> None:
        # The worker sets it before it loads the site, whose modules make their places.
        self._most = _most
        self._free = BoundedSemaphore(_most or 1)
        self._hangs = False

    @contextmanager
    def take(self) -> Iterator[None]:
        """Hold a place within the context. Raises Hanging if none becomes free."""
        if self._most is None:
            yield
            return
        # No lock: at worst one more thread waits for a second, or one more call is refused.
        if not self._free.acquire(timeout=0 if self._hangs else PATIENCE_SECONDS):
            self._hangs = True
            raise Hanging
        try:
            yield
            self._hangs = False
        finally:
            self._free.release()
