"""Weighted means of a board's metrics over its sets, with intervals and draws. It loads numpy.

A number has one interval wherever it stands. A metric on a set has the one that was stored with it,
a mean over sets has one made of these.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from leaderboard.board.cells import MetricColumn
from leaderboard.board.intervals import correlations, mean_with_ends
from leaderboard.board.matrix import Floats, Marks, Matrix

MOST_KEPT = 16
"""Weights whose rows are kept; those of 1,000 models take 3 MB."""
Draws = NDArray[np.float32]
T = TypeVar("T")


@dataclass(frozen=True)
class Means:
    """Weighted means over sets: models × metrics, NaN where a set with a weight lacks its result.

    low, high: the ends of their intervals, NaN where one of the sets has none, as with too few
    examples. draws: drawn metrics × models × draws. sets: the places of those with a weight.
    columns: the values by metric.
    """

    values: Floats
    low: Floats
    high: Floats
    draws: Draws
    sets: tuple[int, ...]
    columns: Mapping[str, MetricColumn]

    @property
    def unsure(self) -> Marks:
        """Return models × metrics that have a value and no interval."""
        return np.isnan(self.low) & ~np.isnan(self.values)

    @cached_property
    def correlations(self) -> Floats:
        """Return drawn metrics × drawn metrics × models."""
        return correlations(self.draws)


def means_over_sets(matrix: Matrix, weights: Mapping[str, float]) -> Means:
    """Return the means over counting sets; one draw uses the same resample of each set."""
    of_sets = tuple(weights.get(one.name, 0.0) for one in matrix.counting)
    return memoised(matrix, of_sets, lambda: _means(matrix, of_sets))


def memoised(matrix: Matrix, key: Any, make: Callable[[], T]) -> T:
    """Return the cached value that was made of these numbers, or make and cache it."""
    memo = matrix.numbers.memo
    found: T | None = memo.get(key)
    if found is None:
        if len(memo) >= MOST_KEPT:
            memo.clear()
        found = memo[key] = make()
    return found


def _means(matrix: Matrix, weights: Sequence[float]) -> Means:
    numbers, shares = matrix.numbers, np.array(weights)
    used = np.flatnonzero(shares)
    of_metrics = shares[:, None] * ~numbers.undefined[: len(shares)]  # sets × metrics
    total = of_metrics.sum(axis=0)
    of_metrics /= np.where(total, total, 1)
    values, low, high = mean_with_ends(numbers, used, of_metrics[used])
    for some in (values, low, high):
        some[:, total == 0] = np.nan
    draws: Draws = np.stack(
        [
            np.tensordot(of_metrics[:, column].astype(np.float32), numbers.draws[:, place], axes=1)
            for place, column in enumerate(map(matrix.metrics.index, matrix.drawn))
        ]
    )
    shown = {
        name: MetricColumn(*(none_for_nan(some[:, place]) for some in (values, low, high)))
        for place, name in enumerate(matrix.metrics)
    }
    return Means(values, low, high, draws, tuple(used.tolist()), shown)


def means_table(matrix: Matrix, means: Means) -> dict[str, dict[str, float | None]]:
    """Return the means as `leaderboard.scoring.dynascore` reads them, by id of the model."""
    rows = none_for_nan(means.values)
    return {
        str(model.id): dict(zip(matrix.metrics, row, strict=True))
        for model, row in zip(matrix.models, rows, strict=True)
    }


def none_for_nan(values: Floats) -> list[Any]:
    """Return the values as lists, with None for NaN."""
    shown = values.astype(object)
    shown[np.isnan(values)] = None
    return cast(list[Any], shown.tolist())


def main_errors(matrix: Matrix, means: Means) -> dict[str, float]:
    """Return standard errors of the main metric, by id of the model."""
    errors = means.draws[matrix.drawn.index(matrix.main)].std(axis=-1, ddof=1).tolist()
    return {str(model.id): error for model, error in zip(matrix.models, errors, strict=True)}
