"""Continuous batching: a new conversation joins the running ones, and leaves when it is done."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from serving.errors import BusyError, DeadlineError, StoppedError
from serving.generation.conversation import Conversation
from serving.generation.decoder import Cache
from serving.generation.sampling import Logits
from serving.measures import count_forward_pass

logger = logging.getLogger(__name__)

CHUNK_TOKENS = 64  # tokens of a prompt that are read while others wait for their next word
LONG_CHUNK_TOKENS = 256  # where nobody waits
MAX_REMEMBERED_TOKENS = 4096  # of ended conversations, so that a next turn need not be read again


class RowDecoder(Protocol):
    """The methods of a decoder that the batch needs. See `decoder.Decoder`."""

    rows: int

    def read_tokens(self, row: int, token_ids: Sequence[int], start: int) -> Logits: ...
    def append_tokens(self, token_ids: Sequence[int], lengths: Sequence[int]) -> Logits: ...
    def copy_to_row(self, source: int, target: int, length: int) -> None: ...
    def copy_row(self, row: int, length: int) -> Cache: ...
    def restore_row(self, row: int, cache: Cache, length: int) -> None: ...


class Batch:
    """A thread that answers conversations, as many at once as the decoder has rows.

    Each step reads a chunk of one prompt and writes one token of every answer. The conversations
    whose answers are being written have the first rows, and the one whose prompt is being read has
    the next row. At most `max_queued` conversations wait.
    """

    def __init__(self, decoder: RowDecoder, *, max_queued: int, name: str) -> None:
        self._decoder, self._max_queued, self._name = decoder, max_queued, name
        self._queued_conversations: list[Conversation] = []
        self._active_conversations: list[Conversation] = []
        self._prompt_conversation: Conversation | None = None
        self._memory = RowMemory(decoder, MAX_REMEMBERED_TOKENS)
        self._condition = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._do_work, name="generation", daemon=True)
        self._thread.start()

    def submit(self, conversation: Conversation) -> None:
        """Queue a conversation. Raises BusyError, StoppedError.

        The batch's thread calls its `on_piece`. The last call has the last piece or an error. There
        is no last call if the conversation was cancelled.
        """
        with self._condition:
            if self._is_closed:
                raise StoppedError("The model server is stopping.")
            self._queued_conversations = [
                waiting for waiting in self._queued_conversations if not waiting.is_cancelled
            ]
            if len(self._queued_conversations) >= self._max_queued:
                raise BusyError("The model has too many requests waiting. Try again soon.")
            self._queued_conversations.append(conversation)
            self._condition.notify()

    def close(self) -> None:
        """Stop all conversations with an error, and end the thread."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        self._thread.join()

    def _do_work(self) -> None:
        while self._wait_for_work():
            try:
                self._remove_ended()
                self._admit_next()
                self._read_chunk()
                self._write_tokens()
            # The thread must go on: other conversations wait for it.
            except Exception as error:
                logger.exception("The language model failed")
                self._fail_conversations(error)
        self._fail_conversations(StoppedError("The model server is stopping."))

    def _wait_for_work(self) -> bool:
        """Wait for work; return False when the batch closes."""
        with self._condition:
            self._condition.wait_for(
                lambda: (
                    self._queued_conversations
                    or self._active_conversations
                    or self._prompt_conversation
                    or self._is_closed
                )
            )
            return not self._is_closed

    def _fail_conversations(self, error: Exception) -> None:
        """End running conversations with an error.

        If the batch is closed, the waiting ones end, too.
        """
        with self._condition:
            failed_conversations = list(self._active_conversations)
            if self._prompt_conversation:
                failed_conversations.append(self._prompt_conversation)
            if self._is_closed:
                failed_conversations += self._queued_conversations
            self._active_conversations, self._prompt_conversation = [], None
        for conversation in failed_conversations:
            conversation.on_piece(error)

    def _remove_ended(self) -> None:
        """Remove conversations that were cancelled or whose deadline has passed."""
        late_conversations, waiting_conversations = [], []
        with self._condition:
            for conversation in self._queued_conversations:
                if _is_over(conversation):
                    late_conversations.append(conversation)
                else:
                    waiting_conversations.append(conversation)
            self._queued_conversations = waiting_conversations
        # From the last row on: `_remove` moves the last one into the gap.
        for row in reversed(range(len(self._active_conversations))):
            if _is_over(self._active_conversations[row]):
                late_conversations.append(self._remove_conversation(row))
        if self._prompt_conversation and _is_over(self._prompt_conversation):
            late_conversations.append(self._prompt_conversation)
            self._prompt_conversation = None
        for conversation in late_conversations:
            if not conversation.is_cancelled:
                error = DeadlineError("The model did not answer within the deadline.")
                conversation.on_piece(error)

    def _admit_next(self) -> None:
        """Begin to read the next prompt, if a row is free and no other prompt is being read.

        The longest prefix that is in the row memory is not read again.
        """
        row = len(self._active_conversations)
        if self._prompt_conversation or row == self._decoder.rows:
            return
        with self._condition:
            if not self._queued_conversations:
                return
            self._prompt_conversation = self._queued_conversations.pop(0)
        # With echo every token of the prompt is reported, so all of them are read.
        if not self._prompt_conversation.is_prompt_reported:
            cached_count = self._memory.restore_prefix(self._prompt_conversation.ids, row)
            self._prompt_conversation.cached_token_count = cached_count
            self._prompt_conversation.stored_token_count = cached_count

    def _read_chunk(self) -> None:
        """Read a chunk of the prompt. At its end, take the first token of the answer."""
        conversation = self._prompt_conversation
        if conversation is None:
            return
        row = len(self._active_conversations)
        # Small pieces while answers are written, so that these go on in between.
        chunk_tokens = CHUNK_TOKENS if self._active_conversations else LONG_CHUNK_TOKENS
        start = conversation.stored_token_count
        end = min(conversation.prompt_token_count, start + chunk_tokens)
        logits = self._decoder.read_tokens(row, conversation.ids[start:end], start)
        count_forward_pass(self._name, row_count=1, token_count=end - start)
        if conversation.is_prompt_reported:
            conversation.report_prompt(logits, start)
        conversation.stored_token_count = end
        if conversation.is_prompt_read:
            self._prompt_conversation = None
            self._active_conversations.append(conversation)
            if conversation.add_next_token(logits[-1]):
                self._remove_conversation(row)

    def _write_tokens(self) -> None:
        """Write one token of every answer."""
        if not self._active_conversations:
            return
        last_tokens = [conversation.ids[-1] for conversation in self._active_conversations]
        lengths = [conversation.stored_token_count for conversation in self._active_conversations]
        logits = self._decoder.append_tokens(last_tokens, lengths)
        count_forward_pass(self._name, row_count=len(last_tokens), token_count=len(last_tokens))
        for conversation in self._active_conversations:
            conversation.stored_token_count += 1
        # From the last row on: `_remove` moves the last one into the gap.
        for row in reversed(range(len(last_tokens))):
            if self._active_conversations[row].add_next_token(logits[row]):
                self._remove_conversation(row)

    def _remove_conversation(self, row: int) -> Conversation:
        """Free a row and return its conversation.

        Its content is stored in the row memory, and the last row moves into the gap.
        """
        removed_conversation = self._active_conversations[row]
        last_row = len(self._active_conversations) - 1
        self._memory.store_row(
            removed_conversation.ids[: removed_conversation.stored_token_count], row
        )
        # The last row moves into the gap, so that rows in work stay the first ones.
        if row != last_row:
            self._decoder.copy_to_row(
                last_row, row, self._active_conversations[last_row].stored_token_count
            )
            self._active_conversations[row] = self._active_conversations[last_row]
        self._active_conversations.pop()
        if self._prompt_conversation:
            self._decoder.copy_to_row(
                last_row + 1, last_row, self._prompt_conversation.stored_token_count
            )
        return removed_conversation


def _is_over(conversation: Conversation) -> bool:
    return conversation.is_cancelled or conversation.deadline <= time.monotonic()


class RowMemory:
    """A cache of the decoder's state for ended conversations, of at most `limit` tokens.

    The most recent conversation is the last entry.
    """

    def __init__(self, decoder: RowDecoder, limit: int) -> None:
        self._decoder, self._limit = decoder, limit
        self._rows: list[tuple[list[int], Cache]] = []

    def store_row(self, token_ids: list[int], row: int) -> None:
        """Store a row's state. Evict the oldest entries if the limit is exceeded.

        token_ids: the row's tokens. The new entry replaces entries with a prefix of these tokens. A
        row of more tokens than the limit is not stored.
        """
        # It would evict all others and then itself.
        if len(token_ids) > self._limit:
            return
        # Former turns of the same conversation are beginnings of this one.
        rows = []
        for cached_ids, cache in self._rows:
            if token_ids[: len(cached_ids)] != cached_ids:
                rows.append((cached_ids, cache))
        rows.append((token_ids, self._decoder.copy_row(row, len(token_ids))))
        while sum(len(cached_ids) for cached_ids, _ in rows) > self._limit:
            rows.pop(0)
        self._rows = rows

    def restore_prefix(self, token_ids: list[int], row: int) -> int:
        """Restore the longest cached prefix of a prompt into a row; return its length in tokens.

        The prompt's last token is never taken from the cache, because reading it yields the logits
        of the answer.
        """
        longest_match, best_cache = 0, None
        for cached_ids, cache in self._rows:
            length = _count_common_tokens(cached_ids, token_ids[:-1])
            if length > longest_match:
                longest_match, best_cache = length, cache
        if best_cache is not None:
            self._decoder.restore_row(row, best_cache, longest_match)
        return longest_match


def _count_common_tokens(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the number of tokens in the common prefix of two sequences."""
    common_count = 0
    for first_token, second_token in zip(first, second, strict=False):
        if first_token != second_token:
            break
        common_count += 1
    return common_count
