"""Caches slow counts for longer: for 50 times as long as they took, and for a minute at least."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Thread
from time import perf_counter
from typing import Any, TypeVar

from django.core.cache import cache
from django.db import connection
from django.utils import timezone

KEPT = timedelta(minutes=1)
KEPT_TIMES = 50
READABLE = timedelta(days=1)
"""Old numbers can be shown for so long, while new ones are counted."""
COUNTING_SECONDS = 900
"""After so long another thread may count: the process of the one that began is gone."""
T = TypeVar("T")
Keys = Sequence[str]
Count = Callable[[Keys], Mapping[str, Any]]


@dataclass(frozen=True)
class Kept:
    """A cached result with the time of its computation; fresh until `until`."""

    numbers: Any
    counted_at: datetime
    until: datetime


def read_or_count(key: str, count: Callable[[], T]) -> T:
    """Return the cached result of `count`, or compute and cache it."""
    result: T = kept_many([key], lambda keys: {key: count()})[key].numbers
    return result


def kept_many(
    keys: Keys, count: Count, is_slow: Callable[[Keys], bool] = lambda keys: False
) -> dict[str, Kept]:
    """Return the results of `count` by key, computing those that are missing or expired.

    is_slow: whether a request should not wait for these keys. A thread then computes them; until it
    ends, callers get expired results or none.
    """
    results: dict[str, Kept] = cache.get_many(keys)
    now = timezone.now()
    expired_keys = [key for key in keys if key not in results or results[key].until <= now]
    if not expired_keys:
        return results
    if not is_slow(expired_keys):
        return results | _count(expired_keys, count)
    # The cache adds a key for one caller only, so that one thread counts.
    claimed = [key for key in expired_keys if cache.add(f"{key}:counting", True, COUNTING_SECONDS)]
    if claimed:
        Thread(target=_count_in_thread, args=(claimed, count), daemon=True).start()
    return results


def _count(keys: Keys, count: Count) -> dict[str, Kept]:
    now, started = timezone.now(), perf_counter()
    numbers = count(keys)
    took = timedelta(seconds=perf_counter() - started)
    # From the start of the count: what is written while it runs may be missing in it.
    until = now + max(KEPT, KEPT_TIMES * took)
    results = {key: Kept(numbers[key], now, until) for key in keys}
    cache.set_many(results, (until - now + READABLE).total_seconds())
    return results


def _count_in_thread(keys: Keys, count: Count) -> None:
    """Compute results as `_count` does, in a thread with its own connection."""
    try:
        _count(keys, count)
    finally:
        cache.delete_many(f"{key}:counting" for key in keys)
        # Django closes connections at the end of requests, and this thread answers none.
        connection.close()
