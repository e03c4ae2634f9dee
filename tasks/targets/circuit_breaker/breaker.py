"""A circuit breaker: a target that keeps failing is left alone for a while.

Knows no Django: the cache that all web processes share is handed in.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from tasks.targets.endpoints.base import EndpointError

FAILURES_TO_OPEN = 3
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
PROBE_SECONDS = 10.0
FORGET_SECONDS = 3600.0
BRIDGE_SECONDS = 150.0
"""From the end of a pause to the next probe of the queue, and the counting of a page."""
COUNTED_REASONS = frozenset({"down", "slow", "rubbish", "misconfigured"})


class TargetNotAsked(EndpointError):
    """Raised if the target was not asked, because it had failed before or no time was left."""


class Cache(Protocol):
    """The part of a cache, shared by all web processes, that the breaker needs."""

    def get(self, key: str, default: Any = None) -> Any: ...
    def get_many(self, keys: Sequence[str]) -> Mapping[str, Any]: ...
    def set(self, key: str, value: Any, timeout: float | None) -> Any: ...
    def add(self, key: str, value: Any, timeout: float | None) -> bool: ...
    def incr(self, key: str) -> int: ...
    def delete(self, key: str) -> Any: ...


class Breaker:
    """A circuit breaker for a target, with its state in the cache under the target's key.

    Closed: calls pass. Open, after 3 counted failures in a row: no calls for a second. Then
    half-open: one probe passes; its success closes the breaker, its failure opens it again for
    twice as long, up to 30 s. If a probe reports nothing for 10 s, another one passes. Failures
    that are not COUNTED_REASONS (`busy`, and those that concern one input) say nothing about the
    target.
    """

    def __init__(self, cache: Cache, key: str, now: Callable[[], float] = time.time) -> None:
        self._cache = cache
        self._failures = f"endpoint:{key}:failures"
        self._pause = f"endpoint:{key}:pause"  # (until when, seconds)
        self._probe = f"endpoint:{key}:probe"
        self._now = now

    def enter(self, deadline_seconds: float) -> None:
        """Let a call pass, or raise EndpointError(down) with the seconds until the next attempt."""
        pause = self._cache.get(self._pause)
        if pause is None:
            return
        left_seconds = pause[0] - self._now()
        # `add` succeeds for one caller only, in whatever process: this one probes.
        if left_seconds <= 0 and self._cache.add(
            self._probe, 1, min(deadline_seconds, PROBE_SECONDS) + 1
        ):
            return
        raise TargetNotAsked(
            "The target failed several times and is left alone for a moment.",
            reason="down",
            retry_after=max(1.0, left_seconds),
        )

    def succeeded(self) -> None:
        """Close the breaker and reset its failures."""
        self._cache.delete(self._failures)
        if self._cache.get(self._pause) is not None:
            self._cache.delete(self._pause)
            self._cache.delete(self._probe)

    def failed(self, error: EndpointError) -> None:
        """Count a failure. If it says nothing about the target, only allow another probe."""
        pause = self._cache.get(self._pause)
        is_counted = error.reason in COUNTED_REASONS
        # The probe failed: pause for twice as long.
        if pause is not None and pause[0] <= self._now():
            if is_counted:
                self._open(min(2 * pause[1], LONGEST_PAUSE))
            self._cache.delete(self._probe)
        # While a pause runs, calls that began before it may still fail. They change nothing.
        elif pause is None and is_counted and self._count() >= FAILURES_TO_OPEN:
            self._open(FIRST_PAUSE)

    def _open(self, seconds: float) -> None:
        self._cache.set(self._pause, (self._now() + seconds, seconds), timeout=FORGET_SECONDS)
        self._cache.delete(self._failures)

    def _count(self) -> int:
        # Create the entry if there is none, then count: two steps, as caches offer no single one.
        self._cache.add(self._failures, 0, timeout=FORGET_SECONDS)
        with suppress(ValueError):  # the entry may go between the two calls
            return self._cache.incr(self._failures)
        return 1


def find_open_breakers(
    cache: Cache, keys: Sequence[str], now: Callable[[], float] = time.time
) -> set[str]:
    """Return the keys of targets that are paused, or were until a moment ago.

    The moment covers the time until the queue asks such a target again, each minute. A target that
    still fails stays in the set, and one that nobody asks leaves it.
    """
    return {
        key for key, until in _find_pauses(cache, keys).items() if now() < until + BRIDGE_SECONDS
    }


def find_ended_pauses(
    cache: Cache, keys: Sequence[str], now: Callable[[], float] = time.time
) -> set[str]:
    """Return the keys of targets whose pause is over and that have not been asked since."""
    return {key for key, until in _find_pauses(cache, keys).items() if until <= now()}


def _find_pauses(cache: Cache, keys: Sequence[str]) -> dict[str, float]:
    """Return the end of each target's latest pause since it answered, as a Unix time in seconds."""
    pauses = cache.get_many([f"endpoint:{key}:pause" for key in keys])
    names = {f"endpoint:{key}:pause": key for key in keys}
    return {names[name]: until for name, (until, _seconds) in pauses.items()}
