"""Dynamic micro-batching: take what is queued now and never wait for more."""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from .errors import BusyError, DeadlineError, StoppedError
from .measures import count

Item = TypeVar("Item")
Result = TypeVar("Result")
Answer = TypeVar("Answer")

PATIENCE = 4  # batches of other sizes that the oldest item lets pass
SLACK = 1  # sizes this close always fit together, however short


@dataclass(eq=False)
class _Call(Generic[Result]):
    """Items that are answered together. Only the future tells whether and how the call ended."""

    finish: Callable[[list[Result]], Any]
    deadline: float
    results: list[Any]
    left: int
    future: "Future[Any]" = field(default_factory=Future)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):  # it has failed already, or nobody waits
            self.future.set_exception(error)

    def is_dropped(self, now: float) -> bool:
        """Return whether nobody waits for the answer. After the deadline, fail the future first."""
        if self.deadline <= now:
            self.fail(DeadlineError("The deadline passed in the queue."))
        return self.future.done()


@dataclass(eq=False)
class _Job(Generic[Item, Result]):
    """One item and its index in its call."""

    item: Item
    size: int
    place: int
    call: _Call[Result]
    passed_by: int = 0  # batches that were taken while it was the oldest


class Batcher(Generic[Item, Result]):
    """A queue of items that `workers` threads answer with `run(batch)`, up to `max_batch` at once.

    A worker takes the oldest items, but no more than its share while other workers are idle. With
    `similar`, it takes items of the most frequent size (the largest at most `similar` times the
    smallest), and the oldest item is passed over at most PATIENCE times. Deadlines are times of
    `time.monotonic()`. `wait_seconds` limits how long a worker waits for a fuller batch. With a
    `name` its batches are counted in the metrics.
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Sequence[Result]],
        *,
        workers: int = 1,
        max_batch: int = 1,
        max_queued: int = 64,
        similar: float | None = None,
        wait_seconds: float = 0.0,
        name: str = "",
    ) -> None:
        self._run, self._max_batch, self._max_queued = run, max_batch, max_queued
        self._similar, self._wait_seconds = similar, wait_seconds
        self._queue: list[_Job[Item, Result]] = []
        self._name = name
        self._changed = threading.Condition()
        self._idle = 0
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"batcher-{n}", daemon=True)
            for n in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self,
        items: Sequence[tuple[Item, int]],
        finish: Callable[[list[Result]], Answer],
        *,
        deadline: float,
    ) -> "Future[Answer]":
        """Queue (item, size) pairs as one call, and return a future for `finish(results)`.

        The results are in order. `finish` runs in the thread that ends the last item; the first
        error ends the future instead. A call is accepted as a whole while the queue is not full,
        so that a call with many items is not starved by small ones. Raises BusyError,
        StoppedError.
        """
        call: _Call[Result] = _Call(finish, deadline, [None] * len(items), len(items))
        jobs = [_Job(item, size, place, call) for place, (item, size) in enumerate(items)]
        with self._changed:
            if self._closed:
                raise StoppedError("The model server is stopping.")
            if len(self._queue) >= self._max_queued:
                self._drop(time.monotonic())
            if len(self._queue) >= self._max_queued:
                raise BusyError("The model has too many requests waiting. Try again soon.")
            # Whole, even over the limit, so that a call with many items is not starved.
            self._queue += jobs
            self._changed.notify(len(jobs))
        return call.future

    def close(self) -> None:
        """Reject queued items, finish running ones, and end the threads."""
        with self._changed:
            self._closed = True
            left, self._queue = self._queue, []
            self._changed.notify_all()
        for job in left:
            job.call.fail(StoppedError("The model server is stopping."))
        for thread in self._threads:
            thread.join()

    def _drop(self, now: float) -> None:
        self._queue = [job for job in self._queue if not job.call.is_dropped(now)]

    def _take(self) -> list[_Job[Item, Result]]:
        """Return the jobs of the next batch; empty when the batcher closes."""
        with self._changed:
            self._idle += 1
            while True:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if self._wait_seconds and not self._closed:
                    self._changed.wait_for(
                        lambda: len(self._queue) >= self._max_batch or self._closed,
                        self._wait_seconds,
                    )
                self._drop(time.monotonic())
                if self._queue or self._closed:
                    break
            # Rounded up: with two idle workers and three jobs, the first takes two.
            share = -(-len(self._queue) // self._idle)
            self._idle -= 1
            count = min(share, self._max_batch)
            taken_jobs = self._alike(self._similar, count) if self._similar else self._queue[:count]
            # Jobs compare by identity, so this is exact and fast.
            gone = set(taken_jobs)
            self._queue = [job for job in self._queue if job not in gone]
            return taken_jobs

    def _alike(self, similar: float, count: int) -> list[_Job[Item, Result]]:
        """Return jobs of the most frequent size. After PATIENCE batches, include the oldest job."""
        if not self._queue:
            return []
        oldest_job = self._queue[0]
        jobs = sorted(self._queue, key=lambda job: job.size)
        sizes = [job.size for job in jobs]
        # For each job as the smallest of a batch, the end of those that fit with it.
        ends = [bisect_right(sizes, size * similar + SLACK) for size in sizes]
        batches = [jobs[n : min(end, n + count)] for n, end in enumerate(ends)]
        if oldest_job.passed_by == PATIENCE:
            batches = [batch for batch in batches if oldest_job in batch]
        # The fullest batch, and of equal ones the one with the oldest job.
        fullest_batch = max(batches, key=lambda batch: (len(batch), oldest_job in batch))
        oldest_job.passed_by += oldest_job not in fullest_batch
        return fullest_batch

    def _work(self) -> None:
        while jobs := self._take():
            if self._name:
                count(self._name, batch=len(jobs), tokens=sum(job.size for job in jobs))
            self._answer(jobs)

    def _answer(self, jobs: list[_Job[Item, Result]]) -> None:
        try:
            results = self._run([job.item for job in jobs])
        except Exception as error:  # raised where the future is awaited
            if len(jobs) == 1:
                jobs[0].call.fail(error)
            else:  # one bad item must not fail its neighbours
                for job in jobs:
                    self._answer([job])
            return
        for job, result in zip(jobs, results, strict=True):
            self._note(job.call, job.place, result)

    def _note(self, call: _Call[Result], place: int, result: Result) -> None:
        """Store a result. The last result completes its call."""
        with self._changed:
            call.results[place] = result
            call.left -= 1
            if call.left:
                return
        try:
            answer = call.finish(call.results)
        except Exception as error:  # raised where the future is awaited
            call.fail(error)
        else:
            with suppress(InvalidStateError):  # nobody waits any more
                call.future.set_result(answer)
