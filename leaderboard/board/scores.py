"""Scores of a board's models by a formula, with intervals and with draws. It loads numpy.

The formulas are those of `leaderboard.ranking`: `compute_anchored_points` and
`compute_priced_points`. A score is the sum of a model's points. Here they are applied to all
models and all resamples at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from leaderboard.board.intervals import Formula, compute_ends
from leaderboard.board.matrix import Floats, Marks, Matrix
from leaderboard.board.means import Draws, Means
from leaderboard.ranking.anchored import Anchors, compute_anchored_points, select_used_weights
from leaderboard.ranking.dynascore import Rates, Rule, compute_priced_points, select_priced_weights


@dataclass(frozen=True)
class Scores:
    """Scores of models; NaN if not evaluated. used: the metrics that have a weight.

    least, most: the worst and the best case that unmeasured metrics allow, equal if all were
    measured. low, high: from the low end of the worst case to the high end of the best; NaN without
    an interval. least_draws, most_draws: the scores by which models are compared in pairs.
    """

    least: Floats
    most: Floats
    low: Floats
    high: Floats
    least_draws: Draws
    most_draws: Draws
    used: tuple[str, ...]

    @property
    def is_run(self) -> Marks:
        """Return a mask of the models that have a score."""
        is_run: Marks = ~np.isnan(self.least)
        return is_run

    @property
    def is_range(self) -> Marks:
        """Return a mask of the models whose score depends on unmeasured metrics."""
        is_range: Marks = self.is_run & (self.least != self.most)
        return is_range


def compute_anchored_scores(
    matrix: Matrix, means: Means, anchors: Anchors, weights: Mapping[str, float]
) -> tuple[Scores, dict[str, Floats]]:
    """Return the anchored scores, and the points of each metric (NaN if not measured)."""
    used_weights = select_used_weights(anchors, weights)
    if not used_weights:
        return _build_empty_scores(matrix, means), {}
    metrics = dict.fromkeys([*used_weights, matrix.main])
    # The main metric is needed even without a weight: it scales all points.
    columns = {metric: _read_column(matrix, means, metric) for metric in metrics}
    # One for each draw, so that scores of two models can be compared in pairs.
    draws = {metric: _read_draws(matrix, means, metric) for metric in metrics}

    def compute_worst(values: Mapping[str, Floats]) -> Floats:
        return _sum_points(
            compute_anchored_points(anchors, used_weights, values, unmeasured_position=0.0)
        )

    def compute_best(values: Mapping[str, Floats]) -> Floats:
        return _sum_points(
            compute_anchored_points(anchors, used_weights, values, unmeasured_position=1.0)
        )

    lowest, highest = compute_worst(columns), compute_best(columns)
    low, high = _compute_ends(matrix, means, compute_worst, columns)
    least_draws = compute_worst(draws).astype(np.float32)
    most_draws = least_draws
    # Most boards have no ranges; then the best case need not be computed again.
    if not np.array_equal(lowest, highest, equal_nan=True):
        high = _compute_ends(matrix, means, compute_best, columns)[1]
        most_draws = compute_best(draws).astype(np.float32)
    scores = Scores(lowest, highest, low, high, least_draws, most_draws, tuple(used_weights))
    return scores, compute_anchored_points(anchors, used_weights, columns)


def compute_priced_scores(matrix: Matrix, means: Means, rule: Rule, rates: Rates) -> Scores:
    """Return the Dynascores, as `dynascore.score_models` computes them for a table.

    The rates are the same in all draws, so the intervals hold for these rates. Rates
    estimated in each draw would be noisy and too large, because each draw has other near ties.
    """
    used_weights = select_priced_weights(rule, rates)
    if not used_weights:
        return _build_empty_scores(matrix, means)

    def compute_score(values: Mapping[str, Floats]) -> Floats:
        return _sum_points(compute_priced_points(rule, rates, values))

    columns = {metric: _read_column(matrix, means, metric) for metric in used_weights}
    score = compute_score(columns)
    low, high = _compute_ends(matrix, means, compute_score, columns)
    draws = compute_score(
        {metric: _read_draws(matrix, means, metric) for metric in used_weights}
    ).astype(np.float32)
    # Costs have one draw, which is repeated for all.
    draws = np.broadcast_to(draws, (len(score), means.draws.shape[-1]))
    return Scores(score, score, low, high, draws, draws, tuple(used_weights))


def _sum_points(points: Mapping[str, Floats]) -> Floats:
    return np.asarray(sum(points.values()))


def _build_empty_scores(matrix: Matrix, means: Means) -> Scores:
    """Return empty scores for a board on which no metric counts."""
    missing = np.full(len(matrix.models), np.nan)
    draws = means.draws[0]
    return Scores(missing, missing, missing, missing, draws, draws, ())


def _read_column(matrix: Matrix, means: Means, metric: str) -> Floats:
    """Return a metric's values by model index."""
    return means.values[:, matrix.metrics.index(metric)]


def _compute_ends(
    matrix: Matrix, means: Means, formula: Formula, columns: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    """Return the ends of the scores' intervals; NaN if one of the metrics has no interval.

    Costs were measured once, so they count as exact.
    """
    drawn_metrics = [metric for metric in columns if metric in matrix.drawn_metrics]
    if not drawn_metrics:
        missing = np.full(len(matrix.models), np.nan)
        return missing, missing
    metric_indices = [matrix.metrics.index(metric) for metric in drawn_metrics]
    ends = {}
    for metric, place in zip(drawn_metrics, metric_indices, strict=True):
        ends[metric] = means.low[:, place], means.high[:, place]
    draw_indices = [matrix.drawn_metrics.index(metric) for metric in drawn_metrics]
    # Rows and columns are the same metrics, in the order of `ends`.
    correlation = means.correlations[np.ix_(draw_indices, draw_indices)]
    # A mean over too few examples has a value but no interval, and so does its score.
    is_unsure = np.any(means.lacks_interval[:, metric_indices], axis=1)
    low, high = compute_ends(formula, columns, ends, correlation)
    return np.where(is_unsure, np.nan, low), np.where(is_unsure, np.nan, high)


def _read_draws(matrix: Matrix, means: Means, metric: str) -> Floats:
    """Return a metric's draws, models × draws, NaN without a value. A cost's draws are equal."""
    # A column of one draw, which numpy repeats beside metrics with all draws.
    column = _read_column(matrix, means, metric)[:, None]
    if metric not in matrix.drawn_metrics:
        return column
    draws = means.draws[matrix.drawn_metrics.index(metric)]
    return np.where(np.isnan(column), np.float32(np.nan), draws)
