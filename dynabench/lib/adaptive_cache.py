"""What takes long to count is counted now and then."""

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

from django.core.cache import cache

KEPT_SECONDS = 30
KEPT_TIMES = 50
"""What takes longer is kept longer: for so many times as long as it took to count."""
T = TypeVar("T")


def kept(key: str, count: Callable[[], T]) -> T:
    """What `count` gives, which is not None: counted now, or a little ago."""
    found: T | None = cache.get(key)
    if found is None:
        started = perf_counter()
        found = count()
        cache.set(key, found, max(KEPT_SECONDS, KEPT_TIMES * (perf_counter() - started)))
    return found
