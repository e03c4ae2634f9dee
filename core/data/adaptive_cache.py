"""Cache the results of slow counts for 50 times as long as they took, at least for a minute."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Thread
from time import perf_counter
from typing import Any, TypeVar

from django.core.cache import cache
from django.db import connection
from django.utils import timezone

MIN_CACHE_TIME = timedelta(minutes=1)
# Counting then takes at most a fiftieth of the time, however slow it is.
CACHE_TIME_FACTOR = 50
MAX_READABLE_AGE = timedelta(days=1)
"""How long expired results can be shown while new ones are computed."""
MAX_COUNTING_SECONDS = 900
"""After this time another thread may count, because the process that began must have died."""
T = TypeVar("T")
Keys = Sequence[str]
CountKeys = Callable[[Keys], Mapping[str, Any]]


@dataclass(frozen=True)
class CachedResult:
    """A cached result and the time of its computation. It is fresh until `until`.

    numbers: the result, of any type.
    """

    numbers: Any
    counted_at: datetime
    until: datetime


def read_or_count(key: str, count: Callable[[], T]) -> T:
    """Return the cached result of `count`, or compute and cache it."""
    result: T = read_or_count_many([key], lambda keys: {key: count()})[key].numbers
    return result


def read_or_count_many(
    keys: Keys, count: CountKeys, is_slow: Callable[[Keys], bool] = lambda keys: False
) -> dict[str, CachedResult]:
    """Return the results of `count` by key. Compute missing and expired results.

    count: computes the values of missing and expired keys. is_slow: returns whether these keys take
    too long for a request to wait. A thread then computes them. Until it ends, callers get expired
    results, and keys without one are missing from the returned dict.
    """
    results: dict[str, CachedResult] = cache.get_many(keys)
    now = timezone.now()
    expired_keys = [key for key in keys if key not in results or results[key].until <= now]
    if not expired_keys:
        return results
    if not is_slow(expired_keys):
        return results | _count_and_cache(expired_keys, count)
    # The cache adds a key for one caller only, so that one thread counts.
    claimed_keys = [
        key for key in expired_keys if cache.add(f"{key}:counting", True, MAX_COUNTING_SECONDS)
    ]
    if claimed_keys:
        Thread(target=_count_in_thread, args=(claimed_keys, count), daemon=True).start()
    return results


def _count_and_cache(keys: Keys, count: CountKeys) -> dict[str, CachedResult]:
    now, started = timezone.now(), perf_counter()
    numbers = count(keys)
    duration = timedelta(seconds=perf_counter() - started)
    # From the start of the count: what is written while it runs may be missing in it.
    until = now + max(MIN_CACHE_TIME, CACHE_TIME_FACTOR * duration)
    results = {key: CachedResult(numbers[key], now, until) for key in keys}
    cache.set_many(results, (until - now + MAX_READABLE_AGE).total_seconds())
    return results


def _count_in_thread(keys: Keys, count: CountKeys) -> None:
    """Compute and cache results in a thread that has its own database connection."""
    try:
        _count_and_cache(keys, count)
    finally:
        # After a failure too, or nobody would count again for MAX_COUNTING_SECONDS.
        cache.delete_many(f"{key}:counting" for key in keys)
        # Django closes connections at the end of requests, and this thread answers none.
        connection.close()
