"""Every request gets its own answer, once, whatever the order and the batches."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.batcher import SIZE_SLACK, Batcher
from serving.errors import BusyError, DeadlineError, StoppedError

FOREVER = 1e12


class Gate:
    """A model that notes its batches and waits while the gate is shut."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()

    def __call__(self, batch: list[int]) -> list[int]:
        self.batches.append(batch)
        self.entered.release()
        assert self.open.wait(60)
        return [-item for item in batch]


def shut(**options: Any) -> tuple[Batcher[int, int], Gate]:
    """A batcher whose only worker is held by item 0."""
    gate = Gate()
    batcher = Batcher[int, int](gate, **options)
    batcher.submit([(0, 1)], list, deadline=FOREVER)
    assert gate.entered.acquire(timeout=60)
    return batcher, gate


@settings(max_examples=40, deadline=None)
@given(
    calls=st.lists(st.lists(st.integers(1, 200), min_size=1, max_size=5), min_size=1, max_size=20),
    workers=st.integers(1, 3),
    max_batch=st.integers(1, 8),
    max_size_ratio=st.sampled_from([None, 1.05]),
    wait=st.sampled_from([0.0, 0.001]),
)
def test_every_item_is_answered_once_with_its_own_answer(
    calls: list[list[int]], workers: int, max_batch: int, max_size_ratio: float | None, wait: float
) -> None:
    batches: list[list[tuple[int, int, int]]] = []

    def run(batch: list[tuple[int, int, int]]) -> list[str]:
        batches.append(batch)
        return [f"{call}.{place}" for call, place, _ in batch]

    batcher = Batcher(
        run,
        workers=workers,
        max_batch=max_batch,
        max_queued=10_000,
        max_size_ratio=max_size_ratio,
        wait_seconds=wait,
    )

    def ask(call: int) -> list[str]:
        items = [((call, place, size), size) for place, size in enumerate(calls[call])]
        return batcher.submit(items, list, deadline=FOREVER).result(60)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(len(calls))))
    batcher.close()
    assert answers == [[f"{c}.{p}" for p in range(len(call))] for c, call in enumerate(calls)]
    seen = [item for batch in batches for item in batch]
    assert sorted(seen) == sorted(
        (c, p, size) for c, call in enumerate(calls) for p, size in enumerate(call)
    )
    for batch in batches:
        sizes = [size for _, _, size in batch]
        assert len(batch) <= max_batch
        # Both ends are at most 1.05 times, and SLACK, from the oldest in between.
        assert (
            not max_size_ratio
            or max(sizes) <= 1.05 * (1.05 * (min(sizes) + SIZE_SLACK)) + SIZE_SLACK
        )


def batches_of(sizes: list[int], **options: Any) -> list[list[int]]:
    """What one worker takes together of items that were queued while it was held by item 0."""
    batcher, gate = shut(**options)
    queued = [batcher.submit([(size, size)], list, deadline=FOREVER) for size in sizes]
    gate.open.set()
    for future in queued:
        future.result(60)
    batcher.close()
    return gate.batches


def test_the_oldest_lets_four_batches_pass() -> None:
    found = batches_of([100, *[20] * 12], max_batch=2, max_size_ratio=1.05)
    assert found == [[0], *[[20, 20]] * 4, [100], *[[20, 20]] * 2]


def test_the_size_of_which_most_are_queued_goes_first() -> None:
    found = batches_of([20, 100, 20, 19, 22, 21], max_batch=3, max_size_ratio=1.05)
    assert found == [[0], [19, 20, 20], [21, 22], [100]]


def test_the_oldest_go_first_where_sizes_do_not_matter() -> None:
    found = batches_of([20, 100, 20, 19, 22, 21], max_batch=3)
    assert found == [[0], [20, 100, 20], [19, 22, 21]]


def test_a_call_is_finished_once_with_its_results_in_order() -> None:
    batcher, gate = shut()
    queued = batcher.submit([(9, 9), (1, 1), (5, 5)], tuple, deadline=FOREVER)
    gate.open.set()
    assert queued.result(60) == (-9, -1, -5)
    broken = batcher.submit([(1, 1)], lambda results: 1 // 0, deadline=FOREVER)
    with pytest.raises(ZeroDivisionError):
        broken.result(60)
    batcher.close()


def test_a_full_queue_is_busy_until_it_drains() -> None:
    batcher, gate = shut(max_queued=2)
    first = batcher.submit([(1, 1)], list, deadline=FOREVER)
    more = batcher.submit([(2, 1), (3, 1), (4, 1)], list, deadline=FOREVER)
    with pytest.raises(BusyError):
        batcher.submit([(5, 1)], list, deadline=FOREVER)
    gate.open.set()
    assert first.result(60) + more.result(60) == [-1, -2, -3, -4]
    assert batcher.submit([(5, 1)], list, deadline=FOREVER).result(60) == [-5]
    batcher.close()


@pytest.mark.parametrize("leave", ["cancel", "deadline"])
def test_what_nobody_waits_for_is_dropped_and_frees_the_queue(leave: str) -> None:
    batcher, gate = shut(max_queued=1)
    deadline = time.monotonic() if leave == "deadline" else FOREVER
    gone = batcher.submit([(1, 1)], list, deadline=deadline)
    if leave == "cancel":
        gone.cancel()
    kept = batcher.submit([(2, 1)], list, deadline=FOREVER)
    gate.open.set()
    assert kept.result(60) == [-2]
    batcher.close()
    assert gate.batches == [[0], [2]]
    if leave == "deadline":
        with pytest.raises(DeadlineError):
            gone.result(60)


def test_a_deadline_passed_in_the_queue_is_told() -> None:
    batcher, gate = shut()
    late = batcher.submit([(1, 1)], list, deadline=time.monotonic() + 0.01)
    time.sleep(0.02)
    gate.open.set()
    with pytest.raises(DeadlineError):
        late.result(60)
    batcher.close()
    assert gate.batches == [[0]]


def test_one_bad_item_does_not_fail_its_neighbours() -> None:
    def run(batch: list[int]) -> list[int]:
        return [1 // item for item in batch]

    batcher = Batcher[int, int](run, max_batch=4, wait_seconds=0.05)
    calls = [
        batcher.submit([(item, 1) for item in items], list, deadline=FOREVER)
        for items in ([1], [1, 0], [1])
    ]
    assert calls[0].result(60) == calls[2].result(60) == [1]
    with pytest.raises(ZeroDivisionError):
        calls[1].result(60)
    batcher.close()


def test_idle_workers_share_what_is_queued() -> None:
    gate = Gate()
    batcher = Batcher[int, int](gate, workers=2, max_batch=8)
    future = batcher.submit([(n, 5) for n in range(4)], list, deadline=FOREVER)
    assert gate.entered.acquire(timeout=60)
    assert gate.entered.acquire(timeout=60)
    gate.open.set()
    assert future.result(60) == [0, -1, -2, -3]
    batcher.close()
    assert sorted(map(len, gate.batches)) == [2, 2]


def test_closing_refuses_the_queue_and_new_calls() -> None:
    batcher, gate = shut()
    queued = batcher.submit([(1, 1)], list, deadline=FOREVER)
    closing = threading.Thread(target=batcher.close)
    closing.start()
    with pytest.raises(StoppedError):
        queued.result(60)
    with pytest.raises(StoppedError):
        batcher.submit([(2, 1)], list, deadline=FOREVER)
    gate.open.set()
    closing.join(60)
    assert not closing.is_alive()
    assert gate.batches == [[0]]
