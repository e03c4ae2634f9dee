"""Dynamic micro-batching: run what is queued now, usually without waiting for more."""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from .errors import BusyError, DeadlineError, StoppedError
from .measures import count_forward_pass

Item = TypeVar("Item")
Result = TypeVar("Result")
Answer = TypeVar("Answer")

MAX_SKIPPED_BATCHES = 4  # batches of other sizes that the oldest item lets pass
SIZE_SLACK = 1  # sizes this close always fit together, however short


@dataclass(eq=False)
class _Call(Generic[Result]):
    """A call with items that are answered together. Only the future has the outcome.

    deadline: a time of time.monotonic(). remaining_count: the number of items without a result.
    """

    finish: Callable[[list[Result]], Any]
    deadline: float
    results: list[Any]
    remaining_count: int
    future: "Future[Any]" = field(default_factory=Future)

    def fail(self, error: Exception) -> None:
        with suppress(InvalidStateError):  # it has failed already, or nobody waits
            self.future.set_exception(error)

    def is_dropped(self, now: float) -> bool:
        """Return whether nobody is waiting for the answer any more.

        After the deadline, first fails the future.
        """
        if self.deadline <= now:
            self.fail(DeadlineError("The deadline passed in the queue."))
        return self.future.done()


@dataclass(eq=False)
class _Job(Generic[Item, Result]):
    """One item of a call.

    index: its index in the call. skip_count: how many batches were taken while it was the oldest
    job.
    """

    item: Item
    size: int
    index: int
    call: _Call[Result]
    skip_count: int = 0  # batches that were taken while it was the oldest


class Batcher(Generic[Item, Result]):
    """A queue of items that `workers` threads answer with `run(batch)`, up to `max_batch` at once.

    A worker takes the oldest items, but no more than its share while other workers are idle. With
    `max_size_ratio`, it takes items of the most frequent size (the largest at most `max_size_ratio`
    times the smallest), and passes over the oldest item at most MAX_SKIPPED_BATCHES times.
    Deadlines are times of `time.monotonic()`. `wait_seconds` limits how long a worker waits for a
    fuller batch. With a `name`, its batches are counted in the metrics.
    """

    def __init__(
        self,
        run: Callable[[list[Item]], Sequence[Result]],
        *,
        workers: int = 1,
        max_batch: int = 1,
        max_queued: int = 64,
        max_size_ratio: float | None = None,
        wait_seconds: float = 0.0,
        name: str = "",
    ) -> None:
        self._run, self._max_batch, self._max_queued = run, max_batch, max_queued
        self._max_size_ratio, self._wait_seconds = max_size_ratio, wait_seconds
        self._queue: list[_Job[Item, Result]] = []
        self._name = name
        self._condition = threading.Condition()
        self._idle_count = 0
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._do_work, name=f"batcher-{n}", daemon=True)
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

        The results are in order. `finish` runs in the thread that completes the last item; the
        first error ends the future instead. Unless the queue is full, a call is accepted with all
        its items, so that small calls do not displace it. Raises BusyError,
        StoppedError.
        """
        call: _Call[Result] = _Call(finish, deadline, [None] * len(items), len(items))
        jobs = [_Job(item, size, index, call) for index, (item, size) in enumerate(items)]
        with self._condition:
            if self._is_closed:
                raise StoppedError("The model server is stopping.")
            if len(self._queue) >= self._max_queued:
                self._remove_dropped_jobs(time.monotonic())
            if len(self._queue) >= self._max_queued:
                raise BusyError("The model has too many requests waiting. Try again soon.")
            # Whole, even over the limit, so that a call with many items is not starved.
            self._queue += jobs
            self._condition.notify(len(jobs))
        return call.future

    def close(self) -> None:
        """Reject queued items, finish running ones, and end the threads."""
        with self._condition:
            self._is_closed = True
            queued_jobs, self._queue = self._queue, []
            self._condition.notify_all()
        for job in queued_jobs:
            job.call.fail(StoppedError("The model server is stopping."))
        for thread in self._threads:
            thread.join()

    def _remove_dropped_jobs(self, now: float) -> None:
        self._queue = [job for job in self._queue if not job.call.is_dropped(now)]

    def _take_batch(self) -> list[_Job[Item, Result]]:
        """Wait for jobs, then remove and return the next batch; empty when the batcher closes."""
        with self._condition:
            self._idle_count += 1
            while True:
                self._condition.wait_for(lambda: self._queue or self._is_closed)
                if self._wait_seconds and not self._is_closed:
                    self._condition.wait_for(
                        lambda: len(self._queue) >= self._max_batch or self._is_closed,
                        self._wait_seconds,
                    )
                self._remove_dropped_jobs(time.monotonic())
                if self._queue or self._is_closed:
                    break
            # Rounded up: with two idle workers and three jobs, the first takes two.
            share = -(-len(self._queue) // self._idle_count)
            self._idle_count -= 1
            job_count = min(share, self._max_batch)
            taken_jobs = (
                self._choose_similar_jobs(self._max_size_ratio, job_count)
                if self._max_size_ratio
                else self._queue[:job_count]
            )
            # Jobs compare by identity, so this is exact and fast.
            taken_set = set(taken_jobs)
            self._queue = [job for job in self._queue if job not in taken_set]
            return taken_jobs

    def _choose_similar_jobs(
        self, max_size_ratio: float, max_jobs: int
    ) -> list[_Job[Item, Result]]:
        """Return jobs of the most frequent size.

        Once the oldest job has been passed over MAX_SKIPPED_BATCHES times, the batch includes it.
        """
        if not self._queue:
            return []
        oldest_job = self._queue[0]
        jobs = sorted(self._queue, key=lambda job: job.size)
        sizes = [job.size for job in jobs]
        # For each job as the smallest of a batch, the end of those that fit with it.
        ends = [bisect_right(sizes, size * max_size_ratio + SIZE_SLACK) for size in sizes]
        batches = [jobs[n : min(end, n + max_jobs)] for n, end in enumerate(ends)]
        if oldest_job.skip_count == MAX_SKIPPED_BATCHES:
            batches = [batch for batch in batches if oldest_job in batch]
        # The fullest batch, and of equal ones the one with the oldest job.
        fullest_batch = max(batches, key=lambda batch: (len(batch), oldest_job in batch))
        oldest_job.skip_count += oldest_job not in fullest_batch
        return fullest_batch

    def _do_work(self) -> None:
        while jobs := self._take_batch():
            if self._name:
                count_forward_pass(
                    self._name, row_count=len(jobs), token_count=sum(job.size for job in jobs)
                )
            self._answer_jobs(jobs)

    def _answer_jobs(self, jobs: list[_Job[Item, Result]]) -> None:
        try:
            results = self._run([job.item for job in jobs])
        except Exception as error:  # raised where the future is awaited
            if len(jobs) == 1:
                jobs[0].call.fail(error)
            else:  # one bad item must not fail its neighbours
                for job in jobs:
                    self._answer_jobs([job])
            return
        for job, result in zip(jobs, results, strict=True):
            self._store_result(job.call, job.index, result)

    def _store_result(self, call: _Call[Result], index: int, result: Result) -> None:
        """Store a result. After the last result, complete the call."""
        with self._condition:
            call.results[index] = result
            call.remaining_count -= 1
            if call.remaining_count:
                return
        try:
            answer = call.finish(call.results)
        except Exception as error:  # raised where the future is awaited
            call.fail(error)
        else:
            with suppress(InvalidStateError):  # nobody waits any more
                call.future.set_result(answer)
