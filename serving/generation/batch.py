"""Continuous batching: a new conversation joins those in work, and leaves when it is done."""

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
REMEMBERED_TOKENS = 4096  # of ended conversations, so that a next turn need not be read again


class Rows(Protocol):
    """The methods of a decoder that the batch needs; see `decoder.Decoder`."""

    rows: int

    def read(self, row: int, ids: Sequence[int], start: int) -> Logits: ...
    def step(self, ids: Sequence[int], lengths: Sequence[int]) -> Logits: ...
    def move(self, source: int, target: int, length: int) -> None: ...
    def copy_of(self, row: int, length: int) -> Cache: ...
    def put(self, row: int, cache: Cache, length: int) -> None: ...


class Batch:
    """A thread that answers conversations, as many at once as the decoder has rows.

    Each step reads a chunk of one prompt and writes one token of every answer. The conversations
    being written have the first rows, and the one being read the next row. At most `max_queued`
    wait.
    """

    def __init__(self, decoder: Rows, *, max_queued: int, name: str) -> None:
        self._decoder, self._max_queued, self._name = decoder, max_queued, name
        self._waiting: list[Conversation] = []
        self._writing: list[Conversation] = []
        self._reading: Conversation | None = None
        self._memory = RowMemory(decoder, REMEMBERED_TOKENS)
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="generation", daemon=True)
        self._thread.start()

    def submit(self, conversation: Conversation) -> None:
        """Queue a conversation. Raises BusyError, StoppedError.

        Its `tell` is called from the batch's thread, finally with the last piece or an error
        unless the conversation was cancelled.
        """
        with self._changed:
            if self._closed:
                raise StoppedError("The model server is stopping.")
            self._waiting = [waiting for waiting in self._waiting if not waiting.is_gone]
            if len(self._waiting) >= self._max_queued:
                raise BusyError("The model has too many requests waiting. Try again soon.")
            self._waiting.append(conversation)
            self._changed.notify()

    def close(self) -> None:
        """Stop all conversations with an error, and end the thread."""
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
            # The thread must go on: other conversations wait for it.
            except Exception as error:
                logger.exception("The language model failed")
                self._fail(error)
        self._fail(StoppedError("The model server is stopping."))

    def _wait(self) -> bool:
        """Wait for work; return False when the batch closes."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting or self._writing or self._reading or self._closed
            )
            return not self._closed

    def _fail(self, error: Exception) -> None:
        """End running conversations with an error and, when the batch closes, waiting ones too."""
        with self._changed:
            failed_conversations = list(self._writing)
            if self._reading:
                failed_conversations.append(self._reading)
            if self._closed:
                failed_conversations += self._waiting
            self._writing, self._reading = [], None
        for conversation in failed_conversations:
            conversation.tell(error)

    def _leave(self) -> None:
        """Remove conversations that were cancelled or whose deadline passed."""
        late_conversations, waiting_conversations = [], []
        with self._changed:
            for conversation in self._waiting:
                if _is_over(conversation):
                    late_conversations.append(conversation)
                else:
                    waiting_conversations.append(conversation)
            self._waiting = waiting_conversations
        # From the last row on: `_remove` moves the last one into the gap.
        for row in reversed(range(len(self._writing))):
            if _is_over(self._writing[row]):
                late_conversations.append(self._remove(row))
        if self._reading and _is_over(self._reading):
            late_conversations.append(self._reading)
            self._reading = None
        for conversation in late_conversations:
            if not conversation.is_gone:
                conversation.tell(DeadlineError("The model did not answer within the deadline."))

    def _join(self) -> None:
        """Begin to read the next prompt, after the longest prefix that the memory contains."""
        row = len(self._writing)
        if self._reading or row == self._decoder.rows:
            return
        with self._changed:
            if not self._waiting:
                return
            self._reading = self._waiting.pop(0)
        # With echo every token of the prompt is reported, so all of them are read.
        if not self._reading.echo:
            self._reading.cached = self._reading.done = self._memory.find(self._reading.ids, row)

    def _read(self) -> None:
        """Read a chunk of the prompt; at its end, take the first token of the answer."""
        reading = self._reading
        if reading is None:
            return
        row = len(self._writing)
        # Small pieces while answers are written, so that these go on in between.
        end = min(reading.prompt, reading.done + (CHUNK if self._writing else LONG_CHUNK))
        logits = self._decoder.read(row, reading.ids[reading.done : end], reading.done)
        count(self._name, batch=1, tokens=end - reading.done)
        if reading.echo:
            reading.note_prompt(logits, reading.done)
        reading.done = end
        if reading.is_read:
            self._reading = None
            self._writing.append(reading)
            if reading.take(logits[-1]):
                self._remove(row)

    def _write(self) -> None:
        """Write one token of every answer."""
        if not self._writing:
            return
        last_tokens = [conversation.ids[-1] for conversation in self._writing]
        lengths = [conversation.done for conversation in self._writing]
        logits = self._decoder.step(last_tokens, lengths)
        count(self._name, batch=len(last_tokens), tokens=len(last_tokens))
        for conversation in self._writing:
            conversation.done += 1
        # From the last row on: `_remove` moves the last one into the gap.
        for row in reversed(range(len(last_tokens))):
            if self._writing[row].take(logits[row]):
                self._remove(row)

    def _remove(self, row: int) -> Conversation:
        """Free a row, store its content in the memory, and move the last row into the gap."""
        removed_conversation, last_row = self._writing[row], len(self._writing) - 1
        self._memory.add(removed_conversation.ids[: removed_conversation.done], row)
        # The last row moves into the gap, so that rows in work stay the first ones.
        if row != last_row:
            self._decoder.move(last_row, row, self._writing[last_row].done)
            self._writing[row] = self._writing[last_row]
        self._writing.pop()
        if self._reading:
            self._decoder.move(last_row + 1, last_row, self._reading.done)
        return removed_conversation


def _is_over(conversation: Conversation) -> bool:
    return conversation.is_gone or conversation.deadline <= time.monotonic()


class RowMemory:
    """A cache of the decoder's state for ended conversations, at most `limit` tokens.

    The latest conversation is the last.
    """

    def __init__(self, decoder: Rows, limit: int) -> None:
        self._decoder, self._limit = decoder, limit
        self._rows: list[tuple[list[int], Cache]] = []

    def add(self, ids: list[int], row: int) -> None:
        """Store a row's content, and evict the oldest entries over the limit."""
        if len(ids) > self._limit:
            return
        # Former turns of the same conversation are beginnings of this one.
        rows = [(old, cache) for old, cache in self._rows if ids[: len(old)] != old]
        rows.append((ids, self._decoder.copy_of(row, len(ids))))
        while sum(len(old) for old, _ in rows) > self._limit:
            rows.pop(0)
        self._rows = rows

    def find(self, ids: list[int], row: int) -> int:
        """Fill a row with the longest cached prefix of a prompt; return its length in tokens.

        The prompt's last token is never taken from the cache, because the answer follows from
        reading it.
        """
        longest, best_cache = 0, None
        for old, cache in self._rows:
            length = _count_shared(old, ids[:-1])
            if length > longest:
                longest, best_cache = length, cache
        if best_cache is not None:
            self._decoder.put(row, best_cache, longest)
        return longest


def _count_shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the common prefix in tokens."""
    shared_count = 0
    for first_token, second_token in zip(first, second, strict=False):
        if first_token != second_token:
            break
        shared_count += 1
    return shared_count
