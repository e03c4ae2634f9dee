"""What a target has written of an answer that is not finished: in the cache, for all processes."""

import time
from collections.abc import Callable, Iterator

from django.core.cache import cache

from annotation.models import Conversation

PAUSE = 0.1
"""Seconds between two looks, and between two parts that are kept."""
LOOKS = 5
"""Looks at the cache for each look at the row."""
LONGEST = 60.0
"""Seconds after which the page asks again, so that nobody holds a thread for long."""


def _key(conversation: Conversation) -> str:
    asked_at = conversation.asked_at
    return f"talk:{conversation.pk}:{asked_at.timestamp() if asked_at else ''}"


def keeper(conversation: Conversation) -> Callable[[str], None]:
    """What hears an answer as it comes, and keeps it at most ten times a second."""
    key, last = _key(conversation), [0.0]

    def heard(text: str) -> None:
        if time.monotonic() - last[0] >= PAUSE:
            last[0] = time.monotonic()
            cache.set(key, text, timeout=LONGEST)

    return heard


def parts(conversation: Conversation) -> Iterator[str]:
    """The text so far, each time that there is more, until the answer is there or failed."""
    key, shown, ends_at = _key(conversation), "", time.monotonic() + LONGEST
    waiting = Conversation.objects.filter(pk=conversation.pk, asked_at=conversation.asked_at)
    while time.monotonic() < ends_at and waiting.exists():
        for _ in range(LOOKS):
            text = cache.get(key, "")
            if text != shown:
                yield text
                shown = text
            time.sleep(PAUSE)
