"""The time of single examples, measured once all are answered and the model is warm."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from .batches import Example

EXAMPLES, SECONDS = 40, 10.0  # so many are asked, as far as there is time
LEAST = 10  # fewer tell nothing
KEY = "single_seconds"
"""Of the line after the answers."""


def timed(
    examples: Sequence[Example],
    answer: Callable[[Example], Iterable[bytes]],
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[bytes]:
    """Yield a line with the seconds that each of the first examples took alone.

    Yields nothing for fewer than LEAST examples. Examples come in random order. Their answers are
    discarded.
    """
    if len(examples) < LEAST:
        return
    seconds_of_each, end = list[float](), clock() + SECONDS
    for example in islice(examples, EXAMPLES):
        started_at = clock()
        if started_at > end:
            break
        for _ in answer(example):
            pass  # a generator does its work only when it is read
        seconds_of_each.append(round(clock() - started_at, 6))
    if len(seconds_of_each) >= LEAST:
        yield json.dumps({KEY: seconds_of_each}).encode() + b"\n"
