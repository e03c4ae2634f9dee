"""Heartbeats, by which long work reports that it continues. Independent of Django and of jobs.

`evaluation.isolation.queue.leases.Heartbeat` is the heartbeat that renews the lease of a job.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import IO, Any, TypeVar

from evaluation.contract import BeatCallback

BEAT_SECONDS = 1.0
CHUNK_BYTES = 2**24
T = TypeVar("T")


def skip_beat() -> None:
    """Do nothing: the heartbeat of work that nobody monitors."""


def call_with_beat(work: Callable[[], T], beat: BeatCallback) -> T:
    """Return the result of work that cannot call `beat` itself.

    The work runs in a thread and must not use the database. Exceptions of `beat` are propagated
    once the work has ended.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        # The pool waits for its thread at the end of the block, even if `beat` raises.
        while not wait([future], BEAT_SECONDS).done:
            beat()
        return future.result()


class BeatingFile:
    """A file wrapper that calls `beat` whenever a piece is read or written."""

    def __init__(self, file: IO[bytes], beat: BeatCallback) -> None:
        self._file, self._beat = file, beat

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes; a negative size reads the rest of the file."""
        self._beat()
        return self._file.read(size)

    def write(self, data: bytes) -> int:
        """Write all bytes of `data` and return their number."""
        self._beat()
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
