"""Weighted means of a board's metrics over its sets, with intervals and draws. It loads numpy.

A number has the same interval wherever it is shown: a metric on a set has the stored one, and a
mean over sets has one computed from these.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from leaderboard.board.cells import MetricColumn
from leaderboard.board.intervals import compute_correlations, compute_mean_with_ends
from leaderboard.board.matrix import Floats, Marks, Matrix

MAX_CACHED = 16
"""The most weightings whose rows are cached; those of 1,000 models take 3 MB."""
Draws = NDArray[np.float32]
T = TypeVar("T")


@dataclass(frozen=True)
class Means:
    """Weighted means over sets: models × metrics, NaN if a weighted set has no result.

    low, high: the ends of their intervals, NaN if one of the sets has none, as with too few
    examples. draws: drawn metrics × models × draws. sets: the indices of the weighted sets.
    columns: the values by metric.
    """

    values: Floats
    low: Floats
    high: Floats
    draws: Draws
    sets: tuple[int, ...]
    columns: Mapping[str, MetricColumn]

    @property
    def lacks_interval(self) -> Marks:
        """Return a mask, models × metrics, of values without an interval."""
        return np.isnan(self.low) & ~np.isnan(self.values)

    @cached_property
    def correlations(self) -> Floats:
        """Return the correlations of draws: drawn metrics × drawn metrics × models."""
        return compute_correlations(self.draws)


def compute_means(matrix: Matrix, weights: Mapping[str, float]) -> Means:
    """Return the means over counting sets.

    weights: the weights of sets by name; sets that are not named have no weight. Draw i uses
    resample i of each set for all models.
    """
    set_weights = tuple(weights.get(each.name, 0.0) for each in matrix.counting_sets)
    return memoise(matrix, set_weights, lambda: _compute_means(matrix, set_weights))


def memoise(matrix: Matrix, key: Any, compute: Callable[[], T]) -> T:
    """Return the value cached with these numbers under the key; compute and cache it if missing."""
    memo = matrix.numbers.memo
    value: T | None = memo.get(key)
    if value is None:
        # Readers move sliders: old weights are seldom used again, so all entries go at once.
        if len(memo) >= MAX_CACHED:
            memo.clear()
        value = memo[key] = compute()
    return value


def _compute_means(matrix: Matrix, weights: Sequence[float]) -> Means:
    """Compute the means. weights: one for each counting set."""
    numbers, set_weights = matrix.numbers, np.array(weights)
    # Sets without a weight may lack results, which must not turn a mean into NaN.
    used_sets = np.flatnonzero(set_weights)
    # A set without enough examples for a metric has no weight in that metric's mean.
    shares = set_weights[:, None] * ~numbers.undefined[: len(set_weights)]  # sets × metrics
    total = shares.sum(axis=0)
    shares /= np.where(total, total, 1)
    values, low, high = compute_mean_with_ends(numbers, used_sets, shares[used_sets])
    for array in (values, low, high):
        array[:, total == 0] = np.nan
    draws = []
    for metric_index, metric in enumerate(matrix.drawn_metrics):
        metric_shares = shares[:, matrix.metrics.index(metric)].astype(np.float32)
        # Resample n of a mean is made of resample n of each set.
        draws.append(np.tensordot(metric_shares, numbers.draws[:, metric_index], axes=1))
    columns = {}
    for metric_index, metric in enumerate(matrix.metrics):
        columns[metric] = MetricColumn(
            replace_nan(values[:, metric_index]),
            replace_nan(low[:, metric_index]),
            replace_nan(high[:, metric_index]),
        )
    return Means(values, low, high, np.stack(draws), tuple(used_sets.tolist()), columns)


def build_means_table(matrix: Matrix, means: Means) -> dict[str, dict[str, float | None]]:
    """Return the means by model id, in the form that `leaderboard.ranking.dynascore` reads."""
    table = {}
    for model, row in zip(matrix.models, replace_nan(means.values), strict=True):
        table[str(model.id)] = dict(zip(matrix.metrics, row, strict=True))
    return table


def replace_nan(values: Floats) -> list[Any]:
    """Return the values as nested lists, with None for NaN."""
    # Through objects, because an array of floats cannot hold None.
    objects = values.astype(object)
    objects[np.isnan(values)] = None
    return cast(list[Any], objects.tolist())


def compute_main_errors(matrix: Matrix, means: Means) -> dict[str, float]:
    """Return the standard errors of the main metric, by model id."""
    errors = means.draws[matrix.drawn_metrics.index(matrix.main)].std(axis=-1, ddof=1).tolist()
    return {str(model.id): error for model, error in zip(matrix.models, errors, strict=True)}
