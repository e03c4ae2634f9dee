"""Call the targets of an annotation at once, without letting a slow target block the site.

A process has a few threads for live calls and a short queue; beyond that the annotator is
asked to try again. Calls to a target that keeps failing are paused (circuit breaker). If
any target fails, the whole call fails: a missing answer never means "not fooled".
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

from core.telemetry.tracing import open_span, submit_work
from tasks.targets.circuit_breaker.breaker import Breaker, TargetNotAsked
from tasks.targets.endpoints.base import (
    Endpoint,
    EndpointError,
    Prediction,
    Usage,
    build_rubbish_error,
)

MAX_ANSWER_CHARS = 30_000
"""The maximum number of characters of an answer that people read."""

CALL_HISTOGRAM = Histogram(
    "dynabench_live_call_seconds",
    "Calls of models while somebody waits, by target and outcome.",
    ["target", "outcome"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90),
)
OPEN_CALL_GAUGE = Gauge(
    "dynabench_live_calls_open",
    "Calls of models that run or wait for a thread.",
    multiprocess_mode="livesum",
)


@dataclass(frozen=True)
class LiveTarget:
    """A target for the live pool.

    name: for messages. inputs: for this target alone, instead of the common inputs. on_text: called
    with the answer's text as it arrives, if the endpoint is a `Writer`. label: the value of the
    label `target` in metrics. There must be few different ones.
    """

    name: str
    endpoint: Endpoint
    breaker: Breaker | None = None
    inputs: Mapping[str, Any] | None = None
    on_text: Callable[[str], None] | None = None
    label: str = "others"


@runtime_checkable
class Writer(Protocol):
    """An endpoint that can stream its answer."""

    def write(
        self,
        item: Mapping[str, Any],
        on_text: Callable[[str], None],
        *,
        deadline_seconds: float,
    ) -> Prediction: ...


class TargetFailed(EndpointError):
    """Raised if one of the targets failed.

    target: its name. error: the cause.
    """

    def __init__(self, target: str, error: EndpointError) -> None:
        super().__init__(f"{target}: {error}", error.reason, error.is_permanent, error.retry_after)
        self.target, self.error = target, error


class PendingAnswers(Future[list[Prediction]]):
    """A future for the answers of all targets, in their order. It raises the first failure.

    ended: a future with each call's usage or None. It resolves once no call is running, and not
    before the answers.
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
        self._call_count = 0  # running and waiting
        self._mean_seconds = 0.5

    def ask(
        self, targets: Sequence[LiveTarget], inputs: Mapping[str, Any], deadline_seconds: float
    ) -> PendingAnswers:
        """Call all targets with one example; return a future for their predictions, in order.

        The deadline counts from now and includes waiting in the queue. A view waits with
        `future.result(timeout=...)` and may stop at TimeoutError; the calls continue, and
        callbacks of `future.add_done_callback` run in a pool thread. The future raises
        TargetFailed (the first failure), or EndpointError with the reason `busy` if the queue is
        full.
        """
        if not targets:
            raise ValueError("A round needs at least one target to ask.")
        collector = _AnswerCollector(len(targets))
        try:
            # 1. Reserve threads for all targets, or refuse at once: nobody waits without a chance.
            self._reserve_threads(len(targets))
        except EndpointError as error:
            collector.future.ended.set_result([None] * len(targets))
            collector.future.set_exception(error)
            return collector.future
        # 2. The deadline includes the time in line.
        ends_at = time.monotonic() + deadline_seconds
        # 3. Ask each target in a thread of the pool.
        for index, target in enumerate(targets):
            call, context = submit_work(
                self._threads, _call_target, target, inputs, ends_at, collector.future
            )
            # 4. Free the thread before the answer is told, so that the next person can begin.
            call.add_done_callback(self._release_thread)
            collect = functools.partial(collector.collect, index, target.name)
            call.add_done_callback(functools.partial(context.run, collect))
        return collector.future

    def _reserve_threads(self, call_count: int) -> None:
        with self._lock:
            # What goes beyond the threads waits in line.
            waiting = max(0, self._call_count + call_count - self._size)
            if waiting > self._max_waiting:
                wait = max(1.0, self._mean_seconds * waiting / self._size)
                raise EndpointError(
                    "Many people are asking the models: try again in a moment.",
                    reason="busy",
                    retry_after=wait,
                )
            self._call_count += call_count
        OPEN_CALL_GAUGE.inc(call_count)

    def _release_thread(self, call: "Future[Prediction]") -> None:
        OPEN_CALL_GAUGE.dec()
        with self._lock:
            self._call_count -= 1
            if call.exception() is None:
                # A moving average, from which the time in line is estimated.
                self._mean_seconds += (call.result().seconds - self._mean_seconds) / 10


def _call_target(
    target: LiveTarget, inputs: Mapping[str, Any], ends_at: float, future: "Future[Any]"
) -> Prediction:
    """Call one target through its breaker, and report the result to the breaker.

    ends_at: the deadline, a time of time.monotonic(). future: the future for all answers. Raises
    EndpointError.
    """
    seconds = ends_at - time.monotonic()
    if seconds <= 0 or future.done():  # done: another target failed, so do not bother this one
        raise TargetNotAsked(
            "The call waited in line for too long.", reason="busy", retry_after=1.0
        )
    if target.breaker is not None:
        target.breaker.enter(seconds)
    started_at = time.monotonic()
    outcome = "error"
    try:
        target_inputs = inputs
        if target.inputs is not None:
            target_inputs = target.inputs
        with open_span("ask target", target=target.label):
            prediction = _check_readable(_ask_endpoint(target, target_inputs, seconds))
        outcome = "ok"
    except EndpointError as error:
        outcome = error.reason
        if target.breaker is not None:
            target.breaker.note_failed_call(error)
        raise
    finally:
        CALL_HISTOGRAM.labels(target.label, outcome).observe(time.monotonic() - started_at)
    if target.breaker is not None:
        target.breaker.note_success()
    return prediction


def _ask_endpoint(target: LiveTarget, inputs: Mapping[str, Any], seconds: float) -> Prediction:
    endpoint = target.endpoint
    if target.on_text is not None and isinstance(endpoint, Writer):
        return endpoint.write(inputs, target.on_text, deadline_seconds=seconds)
    return endpoint.predict([inputs], deadline_seconds=seconds)[0]


def _check_readable(prediction: Prediction) -> Prediction:
    """Return the answer if people can read it.

    Raises EndpointError if it is empty or too long.
    """
    for text in prediction.output.values():
        if isinstance(text, str) and not 0 < len(text.strip()) <= MAX_ANSWER_CHARS:
            error = build_rubbish_error(
                f"The answer is empty, or longer than {MAX_ANSWER_CHARS:,} characters."
            )
            error.usage = prediction.usage
            raise error
    return prediction


class _AnswerCollector:
    """A collector of the answers of several targets for one future."""

    def __init__(self, count: int) -> None:
        self.future = PendingAnswers()
        self._answers: dict[int, Prediction] = {}
        self._usages: list[Usage | None] = [None] * count
        self._open_count = count
        self._lock = threading.Lock()

    def collect(self, index: int, name: str, call: "Future[Prediction]") -> None:
        """Store a finished call. The last answer or the first failure resolves the future."""
        error = call.exception()
        self._count_usage(index, getattr(error, "usage", None) if error else call.result().usage)
        with suppress(InvalidStateError):  # failed before, or cancelled by the caller
            if error is not None:
                if isinstance(error, EndpointError):
                    error = TargetFailed(name, error)
                self.future.set_exception(error)
                return
            with self._lock:
                self._answers[index] = call.result()
                # Decided under the lock: two calls may end at the same moment.
                is_complete = len(self._answers) == len(self._usages)
            if is_complete:
                self.future.set_result([self._answers[index] for index in range(len(self._usages))])

    def _count_usage(self, index: int, usage: Usage | None) -> None:
        with self._lock:
            self._usages[index] = usage
            self._open_count -= 1
            is_last = not self._open_count
        # Outside of the lock, since a callback may take long.
        if is_last:
            self.future.ended.set_result(self._usages)


@functools.cache
def get_process_pool(size: int = 8, max_waiting: int = 16) -> LivePool:
    """Return the live pool of this process. A forked child creates its own."""
    return LivePool(size, max_waiting)


os.register_at_fork(after_in_child=get_process_pool.cache_clear)
