"""Measure the time of single examples, after all are answered and the model is warm."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from .batches import Example

MAX_SINGLES, MAX_SECONDS = 40, 10.0  # at most this many examples, within this time
MIN_SINGLES = 10  # fewer are not informative
SECONDS_KEY = "single_seconds"
"""The key of the line after the answers, which contains the measured seconds."""


def time_single_examples(
    examples: Sequence[Example],
    answer: Callable[[Example], Iterable[bytes]],
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[bytes]:
    """Yield a line with the seconds that each of the first examples took alone.

    Yields nothing if fewer than MIN_SINGLES examples were timed within MAX_SECONDS. Examples come
    in random order. Their answers are discarded.
    """
    if len(examples) < MIN_SINGLES:
        return
    measured_seconds, deadline = list[float](), clock() + MAX_SECONDS
    for example in islice(examples, MAX_SINGLES):
        started_at = clock()
        if started_at > deadline:
            break
        for _ in answer(example):
            pass  # a generator runs only when it is read
        measured_seconds.append(round(clock() - started_at, 6))
    if len(measured_seconds) >= MIN_SINGLES:
        yield json.dumps({SECONDS_KEY: measured_seconds}).encode() + b"\n"
