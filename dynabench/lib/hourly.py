"""Caps by the hour, counted in the cache: for uses that leave no row to count."""

from contextlib import suppress

from django.core.cache import cache
from django.utils import timezone


def count_use(key: str) -> int:
    """Count one use under this key; returns how many there are in this hour of the clock (UTC)."""
    hourly = f"{key}:{timezone.now():%Y%m%d%H}"
    cache.add(hourly, 0, timeout=3600)
    with suppress(ValueError):  # the entry may go between the two calls
        return cache.incr(hourly)
    return 1
