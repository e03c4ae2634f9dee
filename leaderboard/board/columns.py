"""The columns of a board: which of them may count, and where their numbers are stored."""

from collections.abc import Mapping, Sequence
from itertools import chain

from evaluation.contract import GIB
from tasks.config.schema import DETAIL_COLUMNS

LOWER_IS_BETTER_METRICS = frozenset(
    {"memory", "memory_mean", "latency_p95", "robustness_drop", "fairness_gap"}
)
"""Columns for which lower is better, except metrics that count errors (`Matrix.error_metrics`)."""
COST_METRICS = ("throughput", "memory")
"""Metrics that are measured once: there is nothing to resample."""
UPLOADED_RUNNER = "file"
"""The runner of uploaded predictions: nobody measured how fast they were made."""
OWN_RUNNER_PREFIX = "own-"
"""The beginning of the names of own workers' runners, which report speed and memory themselves."""
EXTERNAL_RUNNER_PREFIXES = ("endpoint", OWN_RUNNER_PREFIX)
"""The beginnings of the names of runners that are not machines of the site."""
RUN_COLUMNS: Mapping[str, str] = {
    "throughput": "usage__examples_per_second",
    "memory": "usage__peak_bytes",
    "latency_p95": "usage__latency_p95_seconds",
    "memory_mean": "usage__mean_bytes",
}
"""Columns measured on a plain run as a whole, not in percent, and where a run stores them."""
SIZE_UNITS = [GIB if "bytes" in where else 1 for where in RUN_COLUMNS.values()]
DETAIL_METRICS = frozenset(chain.from_iterable(DETAIL_COLUMNS.values()))
"""Columns that detail another one: they have no weight, no order and no resamples."""


def select_drawn_metrics(metrics: Sequence[str]) -> tuple[str, ...]:
    """Return the metrics that are resampled over examples and may count."""
    return tuple(
        name for name in metrics if name not in COST_METRICS and name not in DETAIL_METRICS
    )


SHARE_METRICS = ("accuracy", "exact_match", "vqa_accuracy")
"""Metrics that are shares of right answers, so that sets can be joined."""


def find_share_metric(metrics: Sequence[str]) -> str | None:
    """Return the first metric that is a share of right answers; None if there is none."""
    return next((name for name in SHARE_METRICS if name in metrics), None)
