"""Scores of a board's models by a formula, with intervals and with draws. It loads numpy."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from leaderboard.board.intervals import Formula, ends_of
from leaderboard.board.matrix import Floats, Marks, Matrix
from leaderboard.board.means import Draws, Means
from leaderboard.scoring.anchored import Anchors, points, used_weights
from leaderboard.scoring.dynascore import Rates, Rule


@dataclass(frozen=True)
class Scores:
    """Scores of models; NaN: not run. used: the metrics that have a weight.

    least, most: the worst and the best that metrics allow which were not measured, equal where all
    were. low, high: from the low end of the worst case to the high end of the best; NaN: none.
    least_draws, most_draws: by which models are paired.
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
        """Return which models have a score."""
        found: Marks = ~np.isnan(self.least)
        return found

    @property
    def is_range(self) -> Marks:
        """Return which models have a score that depends on what was not measured."""
        found: Marks = self.is_run & (self.least != self.most)
        return found


def anchored_scores(
    matrix: Matrix, means: Means, anchors: Anchors, weights: Mapping[str, float]
) -> tuple[Scores, dict[str, Floats]]:
    """Score by the anchored formula; also return what each metric adds, NaN where not measured."""
    used = used_weights(anchors, weights)
    if not used:
        return _none(matrix, means), {}
    names = dict.fromkeys([*used, matrix.main])
    columns = {name: means.values[:, matrix.metrics.index(name)] for name in names}
    draws = {name: _draws(matrix, means, name) for name in names}

    def worst(some: Mapping[str, Floats]) -> Floats:
        return np.asarray(sum(points(anchors, used, some, unmeasured=0.0).values()))

    def best(some: Mapping[str, Floats]) -> Floats:
        return np.asarray(sum(points(anchors, used, some, unmeasured=1.0).values()))

    least, most = worst(columns), best(columns)
    is_same = bool(np.array_equal(least, most, equal_nan=True))
    low, high = _ends(matrix, means, worst, columns)
    if not is_same:
        high = _ends(matrix, means, best, columns)[1]
    least_draws = worst(draws).astype(np.float32)
    most_draws = least_draws if is_same else best(draws).astype(np.float32)
    found = Scores(least, most, low, high, least_draws, most_draws, (*used,))
    return found, points(anchors, used, columns)


def priced_scores(matrix: Matrix, means: Means, rule: Rule, rates: Rates) -> Scores:
    """Compute Σ weight × utility ÷ rate, as `dynascore.scored`, for all models and draws at once.

    The rates are the same in all draws: the interval is that of a score in these units. Rates that
    are read from the draws are noisy and too large, as in each draw other neighbours nearly tie.
    """
    used = {
        name: rate
        for name, weight in rule.weights.items()
        if weight and (rate := rates.values.get(name))
    }
    if not used:
        return _none(matrix, means)
    total = sum(rule.weights[name] for name in used)

    def formula(some: Mapping[str, Floats]) -> Floats:
        return np.asarray(
            sum(
                rule.weights[name] / total / rate * _utility(rule, name, some[name])
                for name, rate in used.items()
            )
        )

    columns = {name: means.values[:, matrix.metrics.index(name)] for name in used}
    score = formula(columns)
    low, high = _ends(matrix, means, formula, columns)
    draws = formula({name: _draws(matrix, means, name) for name in used}).astype(np.float32)
    draws = np.broadcast_to(draws, (len(score), means.draws.shape[-1]))
    return Scores(score, score, low, high, draws, draws, (*used,))


def _none(matrix: Matrix, means: Means) -> Scores:
    """Return scores of which no model has one, as no metric counts."""
    nothing = np.full(len(matrix.models), np.nan)
    draws = means.draws[0]
    return Scores(nothing, nothing, nothing, nothing, draws, draws, ())


def _utility(rule: Rule, name: str, values: Floats) -> Floats:
    budget = rule.budgets.get(name)
    return values if budget is None else budget - values


def _ends(
    matrix: Matrix, means: Means, formula: Formula, columns: Mapping[str, Floats]
) -> tuple[Floats, Floats]:
    """Return the ends of the scores' intervals; NaN where one of the metrics has no interval.

    Costs were measured once, so they count as exact.
    """
    drawn = [name for name in columns if name in matrix.drawn]
    places = [matrix.metrics.index(name) for name in drawn]
    if not drawn:
        nothing = np.full(len(matrix.models), np.nan)
        return nothing, nothing
    ends = {
        name: (means.low[:, place], means.high[:, place])
        for name, place in zip(drawn, places, strict=True)
    }
    of_draws = [matrix.drawn.index(name) for name in drawn]
    correlation = means.correlations[np.ix_(of_draws, of_draws)]
    unsure = np.any(means.unsure[:, places], axis=1)
    low, high = ends_of(formula, columns, ends, correlation)
    return np.where(unsure, np.nan, low), np.where(unsure, np.nan, high)


def _draws(matrix: Matrix, means: Means, name: str) -> Floats:
    """Return a metric's draws, models × draws, NaN without a value. Draws of a cost are equal."""
    column = means.values[:, matrix.metrics.index(name)][:, None]
    if name not in matrix.drawn:
        return column
    return np.where(np.isnan(column), np.float32(np.nan), means.draws[matrix.drawn.index(name)])
