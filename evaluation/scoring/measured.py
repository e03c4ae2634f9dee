"""Compute the speed and memory of a run from what was measured of it. Pure.

A run keeps its measurements beside its usage, so that anybody can recompute these columns of a
board. Their keys are:

`timed_answers`, `timed_seconds`: the answers after the warm-up, and the seconds that they took
`memory_peaks`: bytes, the highest of each of up to MAX_MEMORY_PEAKS equal parts of the run
`memory_byte_seconds`, `memory_seconds`: bytes summed over time, and that time
`single_seconds`: pairs of seconds and the number of examples that took as long, asked alone
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evaluation.contract import GIB

MAX_MEMORY_PEAKS = 64
MAX_DISTINCT_SECONDS = 2000
"""The maximum number of different times that a run keeps, about 30 kB."""
Measurements = Mapping[str, Any]


def count_seconds(seconds: Iterable[float]) -> list[tuple[float, int]] | None:
    """Return each time in seconds with its number of occurrences, shortest first.

    None if there are more than MAX_DISTINCT_SECONDS different times.
    """
    counts = Counter(seconds)
    return sorted(counts.items()) if len(counts) <= MAX_DISTINCT_SECONDS else None


def find_quantile(counted_seconds: Sequence[Sequence[float]], share: float) -> float | None:
    """Return the shortest time that at least this share of the examples did not exceed.

    counted_seconds: as `count_seconds` returns them. Not interpolated. None without any.
    """
    rank = math.ceil(share * sum(count for _, count in counted_seconds))
    for seconds, count in counted_seconds:
        rank -= int(count)
        if rank <= 0:
            return seconds
    return None


def compute_costs(measurements: Measurements) -> dict[str, float]:
    """Return the columns of speed and memory that the measurements give, in the board's units.

    Throughput is in examples per second, memory in GiB, latency in seconds.
    """
    costs: dict[str, float] = {}
    if measurements.get("timed_seconds"):
        costs["throughput"] = measurements["timed_answers"] / measurements["timed_seconds"]
    if peaks := measurements.get("memory_peaks"):
        costs["memory"] = max(peaks) / GIB
        # Whole bytes, as a run's usage has them.
        mean_bytes = measurements["memory_byte_seconds"] / measurements["memory_seconds"]
        costs["memory_mean"] = round(mean_bytes) / GIB
    latency = find_quantile(measurements.get("single_seconds") or (), 0.95)
    if latency is not None:
        costs["latency_p95"] = latency
    return costs
