"""Continuous batching: who asks joins those who are being answered, and leaves when done."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from serving.errors import BusyError, DeadlineError, StoppedError
from serving.generation.conversation import Conversation
from serving.generation.decoder import Cache
from serving.generation.sampling import Logits
from serving.measures import count

logger = logging.getLogger(__name__)

CHUNK = 64  # tokens of a prompt that are read while others wait for their next word
LONG_CHUNK = 256  # where nobody waits
KEPT_TOKENS = 4096  # of conversations that ended, so that their next turn need not be read again


class Rows(Protocol):
    """What the batch needs of a decoder; see `decoder.Decoder`."""

    rows: int

    def read(self, row: int, ids: Sequence[int], start: int) -> Logits: ...
    def step(self, ids: Sequence[int], lengths: Sequence[int]) -> Logits: ...
    def move(self, source: int, target: int, length: int) -> None: ...
    def copy_of(self, row: int, length: int) -> Cache: ...
    def put(self, row: int, kept: Cache, length: int) -> None: ...


class Batch:
    """Answers conversations on one thread, as many at once as the decoder has rows.

    Each turn reads a piece of one prompt and writes one token of every answer. Those being written
    hold the first rows, the one being read the next. At most `max_queued` wait for a row.
    """

    def __init__(self, decoder: Rows, *, max_queued: int, name: str) -> None:
        self._decoder, self._max_queued, self._name = decoder, max_queued, name
        self._waiting: list[Conversation] = []
        self._writing: list[Conversation] = []
        self._reading: Conversation | None = None
        self._kept = RowMemory(decoder, KEPT_TOKENS)
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="generation", daemon=True)
        self._thread.start()

    def submit(self, conversation: Conversation) -> None:
        """Queue it; its `tell` is called from the batch's thread, with the last piece or an error
        at the end unless it was cancelled. Raises BusyError, StoppedError."""
        with self._changed:
            if self._closed:
                raise StoppedError("The model server is stopping.")
            self._waiting = [one for one in self._waiting if not one.is_gone]
            if len(self._waiting) >= self._max_queued:
                raise BusyError("The model has too many requests waiting. Try again soon.")
            self._waiting.append(conversation)
            self._changed.notify()

    def close(self) -> None:
        """Refuse what waits, end what is written, end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while self._wait():
            try:
                self._leave()
                self._join()
                self._read()
                self._write()
            except Exception as error:
                logger.exception("The language model failed")
                self._fail(error)
        self._fail(StoppedError("The model server is stopping."))

    def _wait(self) -> bool:
        """Wait for something to do; return False when the batch closes."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting or self._writing or self._reading or self._closed
            )
            return not self._closed

    def _fail(self, error: Exception) -> None:
        reading = [self._reading] if self._reading else []
        with self._changed:
            left = [*self._writing, *reading, *(self._waiting if self._closed else ())]
            self._writing, self._reading = [], None
        for one in left:
            one.tell(error)

    def _leave(self) -> None:
        """Let go of those that nobody waits for, and of those whose deadline passed."""
        with self._changed:
            late = [one for one in self._waiting if _is_over(one)]
            self._waiting = [one for one in self._waiting if one not in late]
        for row in reversed(range(len(self._writing))):
            if _is_over(self._writing[row]):
                late.append(self._remove(row))
        if self._reading and _is_over(self._reading):
            late.append(self._reading)
            self._reading = None
        for one in late:
            if not one.is_gone:
                one.tell(DeadlineError("The model did not answer within the deadline."))

    def _join(self) -> None:
        """Begin to read the next prompt, from where a kept conversation parts from it."""
        row = len(self._writing)
        if self._reading or row == self._decoder.rows:
            return
        with self._changed:
            if not self._waiting:
                return
            self._reading = self._waiting.pop(0)
        if not self._reading.echo:
            self._reading.cached = self._reading.done = self._kept.find(self._reading.ids, row)

    def _read(self) -> None:
        one = self._reading
        if one is None:
            return
        row = len(self._writing)
        end = min(one.prompt, one.done + (CHUNK if self._writing else LONG_CHUNK))
        logits = self._decoder.read(row, one.ids[one.done : end], one.done)
        count(self._name, batch=1, tokens=end - one.done)
        if one.echo:
            one.note_prompt(logits, one.done)
        one.done = end
        if one.is_read:
            self._reading = None
            self._writing.append(one)
            if one.take(logits[-1]):
                self._remove(row)

    def _write(self) -> None:
        if not self._writing:
            return
        last = [one.ids[-1] for one in self._writing]
        logits = self._decoder.step(last, [one.done for one in self._writing])
        count(self._name, batch=len(last), tokens=len(last))
        for one in self._writing:
            one.done += 1
        for row in reversed(range(len(last))):
            if self._writing[row].take(logits[row]):
                self._remove(row)

    def _remove(self, row: int) -> Conversation:
        """Free a row, keep what stands in it, and close the gap."""
        one, last = self._writing[row], len(self._writing) - 1
        self._kept.add(one.ids[: one.done], row)
        if row != last:
            self._decoder.move(last, row, self._writing[last].done)
            self._writing[row] = self._writing[last]
        self._writing.pop()
        if self._reading:
            self._decoder.move(last + 1, last, self._reading.done)
        return one


def _is_over(one: Conversation) -> bool:
    return one.is_gone or one.deadline <= time.monotonic()


class RowMemory:
    """The memory of conversations that ended, the latest last, of at most `limit` tokens."""

    def __init__(self, decoder: Rows, limit: int) -> None:
        self._decoder, self._limit = decoder, limit
        self._kept: list[tuple[list[int], Cache]] = []

    def add(self, ids: list[int], row: int) -> None:
        """Keep what stands in a row; the oldest go when there is too much."""
        if len(ids) > self._limit:
            return
        grown = [one for one in self._kept if ids[: len(one[0])] != one[0]]
        self._kept = [*grown, (ids, self._decoder.copy_of(row, len(ids)))]
        while sum(len(known) for known, _ in self._kept) > self._limit:
            self._kept.pop(0)

    def find(self, ids: list[int], row: int) -> int:
        """Fill a row with the longest beginning of a prompt that is kept; its length in tokens.

        The prompt's last token is always read: the answer follows from it.
        """
        lengths = [_shared(known, ids[:-1]) for known, _ in self._kept]
        best = max(range(len(lengths)), key=lengths.__getitem__, default=None)
        if best is None or not lengths[best]:
            return 0
        self._decoder.put(row, self._kept[best][1], lengths[best])
        return lengths[best]


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Count how many first tokens are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
