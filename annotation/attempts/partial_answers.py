"""What targets have written of answers that are not finished: in the cache, for all processes."""

import time
from collections.abc import Callable, Iterator, Sequence

from django.core.cache import cache
from django.db.models import Model, QuerySet

from annotation.models import Conversation

PAUSE = 0.1
"""Seconds between two looks, and between two parts that are kept."""
LOOKS = 5
"""Looks at the cache for each look at the row."""
LONGEST = 60.0
"""Seconds after which the page asks again, so that nobody holds a thread for long."""


def build_key(conversation: Conversation) -> str:
    """Return the key of the streamed answer to the conversation's last turn."""
    # With the time, so that an answer never begins with parts of an earlier one.
    asked_at = conversation.asked_at
    return f"talk:{conversation.pk}:{asked_at.timestamp() if asked_at else ''}"


def build_recorder(key: str) -> Callable[[str], None]:
    """Return a callback that stores a partial answer, at most ten times a second."""
    # In a list, so that the inner function can replace it.
    last_time = [0.0]

    def heard(text: str) -> None:
        if time.monotonic() - last_time[0] >= PAUSE:
            last_time[0] = time.monotonic()
            cache.set(key, text, timeout=LONGEST)

    return heard


def stream_texts(keys: Sequence[str], waiting_rows: QuerySet[Model]) -> Iterator[list[str]]:
    """Yield the texts so far whenever one grows, until all end or one fails.

    waiting_rows: selects the row that waits for the answers; empty once it no longer waits.
    """
    sent_texts, ends_at = [""] * len(keys), time.monotonic() + LONGEST
    # The row is read less often than the cache, as it nearly always still waits.
    while time.monotonic() < ends_at and waiting_rows.exists():
        for _ in range(LOOKS):
            cached_texts = cache.get_many(keys)
            texts = [cached_texts.get(key, "") for key in keys]
            if texts != sent_texts:
                yield texts
                sent_texts = texts
            time.sleep(PAUSE)
