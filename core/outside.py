"""Parts that others run, such as a bucket: how many threads of a web process may wait for each."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

PATIENCE_SECONDS = 1.0
"""How long a request waits for a free place before the part counts as hanging."""
_most: int | None = None


def limit_waiting(most: int | None) -> None:
    """Let `most` threads of this process wait for one part. None: any number, as in a job."""
    global _most
    _most = most


def serves_requests() -> bool:
    """Return whether people wait for what this process does."""
    return _most is not None


class Hanging(Exception):
    """An outside service that answers none of the threads that may wait for it."""


class Places:
    """The places of the threads that wait for one part.

    A quick part gives its places back at once, so that nobody notices them. While one hangs,
    further threads are refused without a wait, until a call succeeds again.
    """

    def __init__(self) -> None:
        # The worker sets it before it loads the site, whose modules make their places.
        self._most = _most
        self._free = BoundedSemaphore(_most or 1)
        self._hangs = False

    @contextmanager
    def take(self) -> Iterator[None]:
        """Hold a place while the block runs. Raises Hanging where none gets free."""
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
