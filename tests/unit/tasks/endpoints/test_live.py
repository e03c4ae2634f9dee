import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from django.core.cache.backends.locmem import LocMemCache

from tasks.targets.circuit_breaker.breaker import Breaker, find_ended_pauses, find_open_breakers
from tasks.targets.endpoints.base import EndpointError, EndpointInfo, Prediction, Reason, Usage
from tasks.targets.endpoints.live import LivePool, LiveTarget, TargetFailed, get_process_pool

ITEM = {"text": "x"}


class Gated:
    """An endpoint that waits for its gate, counts its calls and answers or fails."""

    def __init__(self, label: str = "positive", error: EndpointError | None = None) -> None:
        self.gate = threading.Event()
        self.label = label
        self.error = error
        self.calls = 0
        self.deadlines: list[float] = []

    def opened(self) -> "Gated":
        self.gate.set()
        return self

    def predict(
        self, batch: Sequence[Mapping[str, Any]], *, deadline_seconds: float
    ) -> list[Prediction]:
        self.calls += 1
        self.deadlines.append(deadline_seconds)
        assert self.gate.wait(60)
        if self.error is not None:
            raise self.error
        return [Prediction({"label": self.label}, None, 0.01, {}) for _ in batch]

    def info(self, *, deadline_seconds: float) -> EndpointInfo:
        raise NotImplementedError


def failing(reason: Reason) -> Gated:
    return Gated(error=EndpointError("as told", reason=reason, retry_after=4)).opened()


def error_of(future: "Future[list[Prediction]]") -> EndpointError:
    error = future.exception(timeout=60)
    assert isinstance(error, EndpointError)
    return error


def eventually(check: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 60
    while not check():
        assert time.monotonic() < ends_at, "did not happen"
        time.sleep(0.005)


def test_answers_come_in_the_order_of_the_targets() -> None:
    first, second = Gated("positive"), Gated("negative").opened()
    future = LivePool(2, 0).ask([LiveTarget("a", first), LiveTarget("b", second)], ITEM, 20)
    eventually(lambda: second.calls == 1)
    assert not future.done()
    first.gate.set()
    assert [p.output["label"] for p in future.result(60)] == ["positive", "negative"]


def test_a_view_may_go_away_while_the_call_completes() -> None:
    endpoint, finished = Gated(), threading.Event()
    future = LivePool(1, 0).ask([LiveTarget("a", endpoint)], ITEM, 20)
    with pytest.raises(TimeoutError):
        future.result(timeout=0.01)
    kept: list[str] = []

    def keep(done: "Future[list[Prediction]]") -> None:
        kept.append(done.result()[0].output["label"])
        finished.set()

    future.add_done_callback(keep)
    endpoint.gate.set()
    assert finished.wait(60)
    assert kept == ["positive"]


@pytest.mark.parametrize("reason", ["down", "slow", "busy", "rubbish", "refused", "misconfigured"])
def test_one_failing_target_fails_the_ask(reason: Reason) -> None:
    waiting = Gated()
    targets = [LiveTarget("a", waiting), LiveTarget("b", failing(reason))]
    error = error_of(LivePool(2, 0).ask(targets, ITEM, 20))
    waiting.gate.set()
    assert isinstance(error, TargetFailed)
    assert (error.target, error.reason, error.retry_after) == ("b", reason, 4)
    assert str(error) == "b: as told"


class Spending(Gated):
    """It costs a token a call."""

    def predict(self, batch: Any, *, deadline_seconds: float) -> list[Prediction]:
        (found,) = super().predict(batch, deadline_seconds=deadline_seconds)
        return [replace(found, usage=Usage(1, 0))]


def test_what_was_spent_is_known_once_all_calls_have_ended() -> None:
    late, error = Spending(), EndpointError("no use", reason="rubbish")
    error.usage = Usage(3, 2)
    targets = [LiveTarget("a", late), LiveTarget("b", Gated(error=error).opened())]
    asked = LivePool(2, 0).ask(targets, ITEM, 20)
    error_of(asked)
    assert not asked.ended.done()
    late.gate.set()
    assert asked.ended.result(60) == [Usage(1, 0), Usage(3, 2)]


def test_calls_that_were_not_made_cost_nothing() -> None:
    pool, gated = LivePool(1, 0), Gated()
    pool.ask([LiveTarget("a", gated)], ITEM, 20)
    assert pool.ask([LiveTarget("b", Gated())], ITEM, 20).ended.result(60) == [None]
    gated.gate.set()


def test_a_target_still_in_line_is_not_bothered_after_a_failure() -> None:
    pool, late = LivePool(1, 1), Gated().opened()
    error_of(pool.ask([LiveTarget("a", failing("down")), LiveTarget("b", late)], ITEM, 20))
    pool.ask([LiveTarget("c", Gated().opened())], ITEM, 20).result(60)
    assert late.calls == 0


def test_a_defect_reaches_the_caller() -> None:
    class Broken(Gated):
        def predict(self, batch: Any, *, deadline_seconds: float) -> list[Prediction]:
            raise ZeroDivisionError

    future = LivePool(1, 0).ask([LiveTarget("a", Broken())], ITEM, 20)
    assert isinstance(future.exception(20), ZeroDivisionError)


def test_an_ask_needs_targets() -> None:
    with pytest.raises(ValueError):
        LivePool(1, 0).ask([], ITEM, 1)


def test_no_more_than_size_calls_run_at_once() -> None:
    running, most, lock, gate = [0], [0], threading.Lock(), threading.Event()

    class Counting(Gated):
        def predict(self, batch: Any, *, deadline_seconds: float) -> list[Prediction]:
            with lock:
                running[0] += 1
                most[0] = max(most[0], running[0])
            assert gate.wait(60)
            with lock:
                running[0] -= 1
            return [Prediction({}, None, 0.0, {})]

    pool = LivePool(3, 9)
    futures = [pool.ask([LiveTarget("a", Counting())], ITEM, 20) for _ in range(12)]
    eventually(lambda: running[0] == 3)
    busy = error_of(pool.ask([LiveTarget("a", Counting())], ITEM, 20))
    gate.set()
    for future in futures:
        future.result(60)
    assert most[0] == 3
    assert busy.reason == "busy"
    assert busy.retry_after is not None
    assert busy.retry_after >= 1


def test_a_full_line_takes_no_part_of_an_ensemble() -> None:
    pool, blocking, asked = LivePool(1, 2), Gated(), Gated().opened()
    first = pool.ask([LiveTarget("a", blocking)], ITEM, 20)
    three = [LiveTarget(name, asked) for name in "bcd"]
    assert error_of(pool.ask(three, ITEM, 20)).reason == "busy"
    second = pool.ask(three[:2], ITEM, 20)
    blocking.gate.set()
    assert len(first.result(60)) == 1
    assert len(second.result(60)) == 2
    assert asked.calls == 2


def test_the_deadline_counts_the_time_in_line() -> None:
    pool, blocking, late, later = LivePool(1, 2), Gated(), Gated().opened(), Gated().opened()
    breaker = Breaker(LocMemCache("line", {}), "t")
    pool.ask([LiveTarget("a", blocking)], ITEM, 20)
    waited = pool.ask([LiveTarget("b", late, breaker)], ITEM, 0.05)
    patient = pool.ask([LiveTarget("c", later)], ITEM, 20)
    time.sleep(0.1)
    blocking.gate.set()
    assert error_of(waited).reason == "busy"
    assert late.calls == 0
    patient.result(60)
    assert later.deadlines[0] < 19.95


def test_a_cancelled_ask_does_no_harm() -> None:
    pool, endpoint = LivePool(1, 0), Gated()
    future = pool.ask([LiveTarget("a", endpoint)], ITEM, 20)
    eventually(lambda: endpoint.calls == 1)
    assert future.cancel()
    endpoint.gate.set()
    done = LiveTarget("b", Gated().opened())
    eventually(lambda: pool.ask([done], ITEM, 20).exception(20) is None)


def test_a_process_has_one_pool() -> None:
    assert get_process_pool() is get_process_pool()


class Clock:
    """A clock the test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    cache = LocMemCache("breaker", {})
    cache.clear()
    return Breaker(cache, "target-1", clock)


def step(breaker: Breaker, clock: Clock, event: str) -> None:
    """`ok`, `+30` (seconds pass), or a reason with which a call fails."""
    if event.startswith("+"):
        clock.seconds += float(event)
    elif event == "ok":
        breaker.note_success()
    else:
        breaker.note_failed_call(EndpointError("as told", reason=event))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("events", "opens"),
    [
        ("", False),
        ("down down", False),
        ("down slow down", True),
        ("rubbish misconfigured down", True),
        ("down down ok down down", False),
        ("busy busy busy busy", False),
        ("refused refused refused refused", False),
        ("down busy down refused down", True),
        ("down down down +0.9", True),
        ("down down down ok", False),
        ("down down down +1 ok", False),
        ("down down down +1 ok down down", False),
        ("down down down +1 down", True),
        ("down down down +1 down +1.9", True),
        ("down down down +1 down +2", False),
        ("down down down +1 down +2 ok down down down +1", False),  # it begins again
        ("down down down +0.5 down +0.5", False),  # a late failure does not prolong the pause
        ("down down down +1 busy", False),
        ("down down down +1 refused", False),
    ],
)
def test_the_states_of_the_breaker(
    breaker: Breaker, clock: Clock, events: str, opens: bool
) -> None:
    for event in events.split():
        step(breaker, clock, event)
    if opens:
        with pytest.raises(EndpointError) as caught:
            breaker.enter(8)
        assert caught.value.reason == "down"
        assert caught.value.retry_after is not None
        assert 1 <= caught.value.retry_after <= 30
    else:
        breaker.enter(8)


def test_the_pauses_grow_to_half_a_minute(breaker: Breaker, clock: Clock) -> None:
    for _ in range(3):
        step(breaker, clock, "down")
    for pause in (1, 2, 4, 8, 16, 30, 30):
        clock.seconds += pause - 0.01
        with pytest.raises(EndpointError):
            breaker.enter(8)
        clock.seconds += 0.01
        breaker.enter(8)
        step(breaker, clock, "down")


def test_a_restart_of_two_seconds_costs_three(breaker: Breaker, clock: Clock) -> None:
    """Somebody tries each tenth of a second; the model is away for the first two seconds."""
    start, answered = clock.seconds, False
    while not answered:
        clock.seconds += 0.1
        with suppress(EndpointError):
            breaker.enter(8)
            answered = clock.seconds - start > 2
            step(breaker, clock, "ok" if answered else "down")
    assert clock.seconds - start < 3.5


def test_one_probe_at_a_time_when_half_open(breaker: Breaker, clock: Clock) -> None:
    for event in ("down", "down", "down", "+1"):
        step(breaker, clock, event)
    breaker.enter(8)
    with pytest.raises(EndpointError):
        breaker.enter(8)
    step(breaker, clock, "busy")  # the probe told nothing: the next may try
    breaker.enter(8)
    step(breaker, clock, "ok")
    breaker.enter(8)
    breaker.enter(8)


def test_processes_share_the_state_through_the_cache(clock: Clock) -> None:
    cache = LocMemCache("shared", {})
    cache.clear()
    for _ in range(3):
        Breaker(cache, "t", clock).note_failed_call(EndpointError("x", reason="down"))
    with pytest.raises(EndpointError):
        Breaker(cache, "t", clock).enter(8)
    Breaker(cache, "another", clock).enter(8)


def test_a_failing_target_is_left_alone_and_recovers(breaker: Breaker, clock: Clock) -> None:
    pool, endpoint = LivePool(1, 0), failing("down")
    target = LiveTarget("a", endpoint, breaker)
    for _ in range(5):
        assert error_of(pool.ask([target], ITEM, 20)).reason == "down"
    assert endpoint.calls == 3
    clock.seconds += 31
    endpoint.error = None
    assert len(pool.ask([target], ITEM, 20).result(60)) == 1
    assert len(pool.ask([target], ITEM, 20).result(60)) == 1
    assert endpoint.calls == 5


@pytest.mark.parametrize(
    ("events", "is_open", "is_due"),
    [
        ("", False, False),
        ("down down", False, False),
        ("down down down", True, False),
        ("down down down +1", True, True),
        ("down down down +1 down", True, False),
        ("down down down +150", True, True),
        ("down down down +151", False, True),
        ("down down down +151 down", True, False),
        ("down down down +1 ok", False, False),
    ],
)
def test_a_pause_that_is_over_is_bridged_and_then_forgotten(
    breaker: Breaker, clock: Clock, events: str, is_open: bool, is_due: bool
) -> None:
    for event in events.split():
        step(breaker, clock, event)
    keys = ["target-1", "another"]
    found = (
        find_open_breakers(breaker._cache, keys, clock),
        find_ended_pauses(breaker._cache, keys, clock),
    )
    assert found == ({"target-1"} if is_open else set(), {"target-1"} if is_due else set())
