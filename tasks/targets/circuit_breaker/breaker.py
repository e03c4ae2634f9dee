"""A circuit breaker: calls to a target that keeps failing are paused for a while.

No Django: callers pass the cache that all web processes share.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from tasks.targets.endpoints.base import EndpointError

FAILURES_TO_OPEN = 3
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 30.0
PROBE_SECONDS = 10.0
FORGET_SECONDS = 3600.0
BRIDGE_SECONDS = 150.0
"""The time after a pause in which a target still counts as failing, until the queue probes it."""
COUNTED_REASONS = frozenset({"down", "slow", "rubbish", "misconfigured"})


class TargetNotAsked(EndpointError):
    """Raised if the target was not called, because it had failed before or no time was left."""


class Cache(Protocol):
    """The methods of a cache, shared by all web processes, that the breaker needs."""

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
    that are not in COUNTED_REASONS (`busy`, and those about a single input) say nothing about the
    target.
    """

    def __init__(self, cache: Cache, key: str, now: Callable[[], float] = time.time) -> None:
        self._cache = cache
        self._failures = f"endpoint:{key}:failures"
        self._pause = f"endpoint:{key}:pause"  # (until when, seconds)
        self._probe = f"endpoint:{key}:probe"
        self._now = now

    def enter(self, deadline_seconds: float) -> None:
        """Let a call pass, or raise TargetNotAsked with the seconds until the next attempt."""
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
            "The target failed several times, so we paused calls to it for a moment.",
            reason="down",
            retry_after=max(1.0, left_seconds),
        )

    def note_success(self) -> None:
        """Close the breaker and reset its failures."""
        self._cache.delete(self._failures)
        # Nearly always there is no pause, and one look costs less than two deletions.
        if self._cache.get(self._pause) is not None:
            self._cache.delete(self._pause)
            self._cache.delete(self._probe)

    def note_failed_call(self, error: EndpointError) -> None:
        """Record a failed call. If the failure is not about the target, only end the probe."""
        pause = self._cache.get(self._pause)
        is_counted = error.reason in COUNTED_REASONS
        # The probe failed: pause for twice as long.
        if pause is not None and pause[0] <= self._now():
            if is_counted:
                self._start_pause(min(2 * pause[1], MAX_PAUSE_SECONDS))
            self._cache.delete(self._probe)
        # While a pause runs, calls that began before it may still fail. They change nothing.
        elif pause is None and is_counted and self._count_failure() >= FAILURES_TO_OPEN:
            self._start_pause(FIRST_PAUSE_SECONDS)

    def _start_pause(self, seconds: float) -> None:
        # Kept beyond its end, because the next pause is twice as long as this one.
        self._cache.set(self._pause, (self._now() + seconds, seconds), timeout=FORGET_SECONDS)
        self._cache.delete(self._failures)

    def _count_failure(self) -> int:
        # Create the entry if there is none, then count: two steps, as caches offer no single one.
        self._cache.add(self._failures, 0, timeout=FORGET_SECONDS)
        with suppress(ValueError):  # the entry may go between the two calls
            return self._cache.incr(self._failures)
        return 1


def find_open_breakers(
    cache: Cache, keys: Sequence[str], now: Callable[[], float] = time.time
) -> set[str]:
    """Return the keys of targets that are paused, or whose pause ended within BRIDGE_SECONDS.

    Within this time the queue, which runs each minute, calls such a target again. If the call
    fails, the target stays in the set. If nobody calls the target, it leaves the set.
    """
    # A pause that has just ended still counts, until somebody has called the target.
    return {
        key
        for key, paused_until in _find_pauses(cache, keys).items()
        if now() < paused_until + BRIDGE_SECONDS
    }


def find_ended_pauses(
    cache: Cache, keys: Sequence[str], now: Callable[[], float] = time.time
) -> set[str]:
    """Return the keys of targets whose pause is over and that have not been called since."""
    return {key for key, paused_until in _find_pauses(cache, keys).items() if paused_until <= now()}


def _find_pauses(cache: Cache, keys: Sequence[str]) -> dict[str, float]:
    """Return the end of each target's pause by key, as Unix time; working targets are left out."""
    # One read for all targets, because a shared cache is another machine.
    pauses = cache.get_many([f"endpoint:{key}:pause" for key in keys])
    keys_by_name = {f"endpoint:{key}:pause": key for key in keys}
    return {keys_by_name[name]: paused_until for name, (paused_until, _seconds) in pauses.items()}
