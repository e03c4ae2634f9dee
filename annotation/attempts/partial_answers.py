"""Partial answers of targets that are still writing, in the cache for all processes."""

import time
from collections.abc import Callable, Iterator, Sequence

from django.core.cache import cache
from django.db.models import Model, QuerySet

from annotation.models import Conversation

PAUSE_SECONDS = 0.1
"""Seconds between two reads of the cache, and between two writes of a partial answer."""
READS_PER_LISTENER = 5
"""Reads of the cache for each read of the waiting row."""
MAX_LISTEN_SECONDS = 60.0
"""Seconds after which a stream ends and frees its thread. The page then reconnects."""


def build_stream_key(conversation: Conversation) -> str:
    """Return the key of the streamed answer to the conversation's last turn."""
    # With the time, so that an answer never begins with parts of an earlier one.
    asked_at = conversation.asked_at
    return f"talk:{conversation.pk}:{asked_at.timestamp() if asked_at else ''}"


def build_recorder(key: str) -> Callable[[str], None]:
    """Return a callback that stores a partial answer, at most ten times a second."""
    # In a list, so that the inner function can replace it.
    last_time = [0.0]

    def record_text(text: str) -> None:
        if time.monotonic() - last_time[0] >= PAUSE_SECONDS:
            last_time[0] = time.monotonic()
            cache.set(key, text, timeout=MAX_LISTEN_SECONDS)

    return record_text


def stream_texts(keys: Sequence[str], waiting_rows: QuerySet[Model]) -> Iterator[list[str]]:
    """Yield the partial answers, in the order of `keys`, whenever one changes.

    Stops when the row no longer waits, or after MAX_LISTEN_SECONDS. waiting_rows: a queryset with
    the row that waits for the answers, empty once it no longer waits.
    """
    sent_texts, deadline = [""] * len(keys), time.monotonic() + MAX_LISTEN_SECONDS
    # The row is read less often than the cache, as it nearly always still waits.
    while time.monotonic() < deadline and waiting_rows.exists():
        for _ in range(READS_PER_LISTENER):
            cached_texts = cache.get_many(keys)
            texts = [cached_texts.get(key, "") for key in keys]
            if texts != sent_texts:
                yield texts
                sent_texts = texts
            time.sleep(PAUSE_SECONDS)
