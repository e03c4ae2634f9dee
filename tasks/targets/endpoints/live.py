"""Asking the targets of one annotation at once, without letting a slow target hold the site.

A process has a few threads for live calls and a short waiting line; beyond that the annotator is
asked to try again. A target that keeps failing is left alone for a while (circuit breaker). When
any target fails, the whole ask fails: a missing answer is never "not fooled".
"""

import functools
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from prometheus_client import Gauge, Histogram

from core.telemetry.tracing import span, submit
from tasks.targets.endpoints.base import Endpoint, EndpointError, Prediction, Usage, rubbish

FAILURES_TO_OPEN = 3
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
PROBE_SECONDS = 10.0
FORGET_SECONDS = 3600.0
BRIDGE_SECONDS = 150.0
"""From the end of a pause to the next probe of the queue, and the counting of a page."""
MAX_ANSWER_CHARS = 30_000
"""Characters of an answer that people read."""
COUNTED_REASONS = frozenset({"down", "slow", "rubbish", "misconfigured"})


CALLS = Histogram(
    "dynabench_live_call_seconds",
    "Calls of models while somebody waits, by target and outcome.",
    ["target", "outcome"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90),
)
OPEN_CALLS = Gauge(
    "dynabench_live_calls_open",
    "Calls of models that run or wait for a thread.",
    multiprocess_mode="livesum",
)


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
        left = pause[0] - self._now()
        # `add` succeeds for one caller only, in whatever process: this one probes.
        if left <= 0 and self._cache.add(self._probe, 1, min(deadline_seconds, PROBE_SECONDS) + 1):
            return
        raise TargetNotAsked(
            "The target failed several times and is left alone for a moment.",
            reason="down",
            retry_after=max(1.0, left),
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
        counted = error.reason in COUNTED_REASONS
        # The probe failed: pause for twice as long.
        if pause is not None and pause[0] <= self._now():
            if counted:
                self._open(min(2 * pause[1], LONGEST_PAUSE))
            self._cache.delete(self._probe)
        # While a pause runs, calls that began before it may still fail. They change nothing.
        elif pause is None and counted and self._count() >= FAILURES_TO_OPEN:
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


@dataclass(frozen=True)
class LiveTarget:
    """A target for the live pool. name: for messages.

    inputs: for this target alone, instead of the common inputs. heard: called with the answer's
    text as it arrives, if the endpoint is a `Writer`. label: one of few, by which calls are
    counted.
    """

    name: str
    endpoint: Endpoint
    breaker: Breaker | None = None
    inputs: Mapping[str, Any] | None = None
    heard: Callable[[str], None] | None = None
    label: str = "others"


@runtime_checkable
class Writer(Protocol):
    """An endpoint that can stream its answer."""

    def write(
        self,
        item: Mapping[str, Any],
        heard: Callable[[str], None],
        *,
        deadline_seconds: float,
    ) -> Prediction: ...


class TargetNotAsked(EndpointError):
    """Raised if the target was not asked, because it had failed before or no time was left."""


class TargetFailed(EndpointError):
    """Raised if one of the targets failed. target: its name. error: the cause."""

    def __init__(self, target: str, error: EndpointError) -> None:
        super().__init__(f"{target}: {error}", error.reason, error.permanent, error.retry_after)
        self.target, self.error = target, error


class PendingAnswers(Future[list[Prediction]]):
    """A future for the answers of all targets, in their order; raises the first failure.

    ended: a future that resolves once no call is running, not before the answers, with each call's
    usage or None.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ended: Future[list[Usage | None]] = Future()


class LivePool:
    """A thread pool for `size` live calls at once, with at most `max_waiting` more in the queue."""

    def __init__(self, size: int, max_waiting: int) -> None:
        self._size = size
        self._max_waiting = max_waiting
        self._threads = ThreadPoolExecutor(size, "live-target")
        self._lock = threading.Lock()
        self._calls = 0  # running and waiting
        self._mean_seconds = 0.5

    def ask(
        self, targets: Sequence[LiveTarget], inputs: Mapping[str, Any], deadline_seconds: float
    ) -> PendingAnswers:
        """Ask all targets for one example. The future has their predictions in order.

        The deadline counts from now and includes waiting in the queue. A view waits with
        `future.result(timeout=...)` and may stop at TimeoutError; the calls continue, and
        callbacks of `future.add_done_callback` run in a pool thread. The future raises
        TargetFailed (the first failure), or EndpointError(busy) if the queue is full.
        """
        if not targets:
            raise ValueError("A round needs at least one target to ask.")
        together = _AnswerCollector(len(targets))
        try:
            # 1. Reserve threads for all targets, or refuse at once: nobody waits without a chance.
            self._reserve(len(targets))
        except EndpointError as error:
            together.future.ended.set_result([None] * len(targets))
            together.future.set_exception(error)
            return together.future
        # 2. The deadline includes the time in line.
        ends_at = time.monotonic() + deadline_seconds
        # 3. Ask each target in a thread of the pool.
        for place, target in enumerate(targets):
            call, context = submit(
                self._threads, _call_target, target, inputs, ends_at, together.future
            )
            # 4. Free the thread before the answer is told, so that the next person can begin.
            call.add_done_callback(self._free)
            collect = functools.partial(together.collect, place, target.name)
            call.add_done_callback(functools.partial(context.run, collect))
        return together.future

    def _reserve(self, calls: int) -> None:
        with self._lock:
            # What goes beyond the threads waits in line.
            waiting = max(0, self._calls + calls - self._size)
            if waiting > self._max_waiting:
                wait = max(1.0, self._mean_seconds * waiting / self._size)
                raise EndpointError(
                    "Many people are asking the models: try again in a moment.",
                    reason="busy",
                    retry_after=wait,
                )
            self._calls += calls
        OPEN_CALLS.inc(calls)

    def _free(self, call: "Future[Prediction]") -> None:
        OPEN_CALLS.dec()
        with self._lock:
            self._calls -= 1
            if call.exception() is None:
                # A moving average, from which the time in line is estimated.
                self._mean_seconds += (call.result().seconds - self._mean_seconds) / 10


def _call_target(
    target: LiveTarget, inputs: Mapping[str, Any], ends_at: float, future: "Future[Any]"
) -> Prediction:
    """Call one target through its breaker, and report the result to the breaker."""
    seconds = ends_at - time.monotonic()
    if seconds <= 0 or future.done():  # done: another target failed, so do not bother this one
        raise TargetNotAsked(
            "The call waited in line for too long.", reason="busy", retry_after=1.0
        )
    if target.breaker is not None:
        target.breaker.enter(seconds)
    began = time.monotonic()
    outcome = "error"
    try:
        target_inputs = inputs
        if target.inputs is not None:
            target_inputs = target.inputs
        with span("ask target", target=target.label):
            prediction = _check_readable(_ask_endpoint(target, target_inputs, seconds))
        outcome = "ok"
    except EndpointError as error:
        outcome = error.reason
        if target.breaker is not None:
            target.breaker.failed(error)
        raise
    finally:
        CALLS.labels(target.label, outcome).observe(time.monotonic() - began)
    if target.breaker is not None:
        target.breaker.succeeded()
    return prediction


def _ask_endpoint(target: LiveTarget, inputs: Mapping[str, Any], seconds: float) -> Prediction:
    endpoint = target.endpoint
    if target.heard is not None and isinstance(endpoint, Writer):
        return endpoint.write(inputs, target.heard, deadline_seconds=seconds)
    return endpoint.predict([inputs], deadline_seconds=seconds)[0]


def _check_readable(prediction: Prediction) -> Prediction:
    """Return the answer if people can read it.

    Raises EndpointError(rubbish) if it is empty or too long.
    """
    for text in prediction.output.values():
        if isinstance(text, str) and not 0 < len(text.strip()) <= MAX_ANSWER_CHARS:
            error = rubbish(f"The answer is empty, or longer than {MAX_ANSWER_CHARS:,} characters.")
            error.usage = prediction.usage
            raise error
    return prediction


class _AnswerCollector:
    """A collector of the answers of several targets for one future."""

    def __init__(self, count: int) -> None:
        self.future = PendingAnswers()
        self._answers: dict[int, Prediction] = {}
        self._usages: list[Usage | None] = [None] * count
        self._open = count
        self._lock = threading.Lock()

    def collect(self, place: int, name: str, call: "Future[Prediction]") -> None:
        """Store one finished call. Resolve with the last answer or the first failure."""
        error = call.exception()
        self._count(place, getattr(error, "usage", None) if error else call.result().usage)
        with suppress(InvalidStateError):  # failed before, or cancelled by the caller
            if error is not None:
                if isinstance(error, EndpointError):
                    error = TargetFailed(name, error)
                self.future.set_exception(error)
                return
            with self._lock:
                self._answers[place] = call.result()
                # Decided under the lock: two calls may end at the same moment.
                complete = len(self._answers) == len(self._usages)
            if complete:
                self.future.set_result([self._answers[place] for place in range(len(self._usages))])

    def _count(self, place: int, usage: Usage | None) -> None:
        with self._lock:
            self._usages[place] = usage
            self._open -= 1
            is_last = not self._open
        # Outside of the lock, since a callback may take long.
        if is_last:
            self.future.ended.set_result(self._usages)


@functools.cache
def get_process_pool(size: int = 8, max_waiting: int = 16) -> LivePool:
    """Return the live pool of this process. A forked child creates its own."""
    return LivePool(size, max_waiting)


os.register_at_fork(after_in_child=get_process_pool.cache_clear)
