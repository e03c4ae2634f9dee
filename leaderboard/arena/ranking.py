"""Strengths of models that people compared in pairs: Bradley and Terry's model with ties.

Davidson (1970): let d be the strength of the left model minus that of the right model. The left
model wins with weight exp(d/2), the right model with weight exp(-d/2), and neither with weight
exp(tie). Without ties this is Bradley and Terry's model. docs/arena.md explains the rules.

It loads numpy and scipy.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import stdtrit

from leaderboard.ranking.ranks import compute_shared_ranks

LEFT, RIGHT, TIE = range(3)
DRAW_COUNT = 500
MAX_STRENGTH = 30.0
"""A strength or tie parameter beyond this is taken to be infinite."""
MAX_FINITE_STRENGTH = 10.0
"""A fitted strength or tie parameter beyond this is infinite: the fit stopped on its way there."""
MAX_STEPS = 100
TOLERANCE = 1e-10
"""The fit ends when a further step would raise the log likelihood by less than about this."""
PRIOR_GAMES = 0.5
"""The number of wins, and of losses, of each model against the imaginary one."""
Floats = NDArray[np.floating[Any]]
PositionArray = NDArray[np.intp]


class Votes(NamedTuple):
    """Arrays with one entry per comparison.

    left, right: the indices of the models. outcome: which of them won, or a tie. voter: any number
    that identifies the voter. weight: how much each comparison counts; None: 1 each. draw_weight:
    a further factor, for pairs that were drawn with unequal chances; None: 1 each.
    """

    left: PositionArray
    right: PositionArray
    outcome: PositionArray  # LEFT, RIGHT or TIE
    voter: PositionArray
    weight: Floats | None = None
    draw_weight: Floats | None = None

    @property
    def full_weight(self) -> Floats:
        """Return the product of both weights of each comparison."""
        weight = np.ones(len(self.left)) if self.weight is None else self.weight
        return weight if self.draw_weight is None else weight * self.draw_weight


Interval = tuple[float | None, float | None, float | None]
"""A value with the ends of its 95% interval; None where unknown."""


@dataclass(frozen=True)
class Strength:
    """The natural logarithm of a model's strength with a 95% interval; ranked models average 0.

    value: None for a model that no chain of comparisons connects with most others. low, high: None
    also if there is only one voter.
    """

    value: float | None
    low: float | None
    high: float | None
    rank: int | None


@dataclass(frozen=True)
class Ranking:
    """The models' strengths by index, and the effects of their answers' style.

    is_bounded: maximum likelihood was infinite, so an imaginary model was added.
    """

    strengths: tuple[Strength, ...]
    is_bounded: bool
    style: tuple[Interval, ...] = ()
    """The effect of each covariate on the lead of the side that has one unit more of it."""


class Fit(NamedTuple):
    """Strengths with mean 0, and the logarithm of the weight of a tie (None without ties)."""

    strengths: Floats
    style: Floats  # the effect of each covariate
    tie: float | None
    is_bounded: bool


@dataclass(frozen=True)
class Pairs:
    """The compared pairs of `count` models, by the indices of both.

    Counts have shape (pairs, 3): wins of the first, wins of the second, and ties. style has
    shape (pairs, covariates): how much more of each covariate the first has than the second. With
    style, each comparison is a pair of its own.
    """

    count: int
    first: PositionArray
    second: PositionArray
    style: Floats = field(default_factory=lambda: np.empty((0, 0)))

    @cached_property
    def covariates(self) -> Floats:
        """Return `style`, with no columns when there are no covariates."""
        if self.style.size:
            return self.style
        return np.empty((len(self.first), 0))

    @cached_property
    def bounded_pairs(self) -> "Pairs":
        """Return these pairs plus an imaginary last model that is compared with every other model.

        To bound the effect of each covariate, the imaginary model is also compared with itself,
        with one more unit of the covariate on one side.
        """
        models, style_count = np.arange(self.count), self.covariates.shape[1]
        imaginary = np.full(self.count + style_count, self.count)
        no_style = np.zeros((self.count, style_count))
        return Pairs(
            self.count + 1,
            np.concatenate([self.first, models, imaginary[self.count :]]),
            np.concatenate([self.second, imaginary]),
            np.vstack([self.covariates, no_style, np.eye(style_count)]),
        )

    def fit(self, counts: Floats, start: Fit | None = None) -> Fit:
        """Return the maximum-likelihood fit, with an imaginary model if it is infinite without one.

        Each model then has half a win and half a loss against the imaginary one.
        """
        fit = None
        if self._is_strongly_connected(counts):
            fit = self._maximize_likelihood(counts, start)
        return fit or self.fit_bounded(counts)

    def fit_bounded(self, counts: Floats) -> Fit:
        """Return the maximum-likelihood fit with the imaginary model, which is always finite."""
        # For each imaginary pair: half a win, half a loss, no tie.
        halves = np.tile([PRIOR_GAMES, PRIOR_GAMES, 0], (self.count + self.covariates.shape[1], 1))
        # With many ties, its finite strengths lie beyond what tells an infinite maximum otherwise.
        fit = self.bounded_pairs._maximize_likelihood(np.vstack([counts, halves]), None, np.inf)
        assert fit is not None  # each model has won and lost against the imaginary one
        strengths = fit.strengths[:-1]
        return Fit(strengths - strengths.mean(), fit.style, fit.tie, is_bounded=True)

    def _is_strongly_connected(self, counts: Floats) -> bool:
        """Return whether every group of models has at least once beaten or tied one of the others.

        Otherwise the maximum likelihood is infinite (Ford 1957).
        """
        # A tie counts for both sides, as half a win and half a loss.
        won, lost = counts[:, [0, 2]].any(axis=1), counts[:, [1, 2]].any(axis=1)
        winners = np.append(self.first[won], self.second[lost])
        losers = np.append(self.second[won], self.first[lost])
        return _find_groups(self.count, winners, losers, "strong")[0] == 1

    def _maximize_likelihood(
        self, counts: Floats, start: Fit | None, limit: float = MAX_FINITE_STRENGTH
    ) -> Fit | None:
        """Find the maximum likelihood by Newton's method with step halving; None if infinite.

        limit: a strength or tie parameter beyond it counts as infinite.
        """
        # A point contains the strengths, the effects of style and the logarithm of a tie's weight.
        point = np.zeros(self.count + self.covariates.shape[1] + 1)
        has_ties = bool(counts[:, 2].any())
        # The start must have a tie's weight exactly if the fit has one.
        if start and (start.tie is not None) == has_ties:
            point = np.concatenate([start.strengths, start.style, [start.tie or 0.0]])
        value, chances = self._compute_log_likelihood(counts, point, has_ties)
        for _ in range(MAX_STEPS):
            try:
                step, gain = self._compute_step(counts, chances, has_ties)
            except LinAlgError:  # numerically flat: it diverges to infinity
                return None
            if gain < TOLERANCE:
                # Ties alone do not bound a lead where the weight of a tie grows with it.
                if np.abs(point).max() > limit:
                    return None
                strengths = point[: self.count] - point[: self.count].mean()
                tie = float(point[-1]) if has_ties else None
                return Fit(strengths, point[self.count : -1], tie, is_bounded=False)
            previous_value = value
            # A full step may overshoot; halving it often enough raises the likelihood.
            while True:
                value, chances = self._compute_log_likelihood(counts, point + step, has_ties)
                if value >= previous_value - TOLERANCE:
                    break
                step /= 2
            point = point + step
            # The maximum is at infinity, which the imaginary model avoids.
            if np.abs(point).max() > max(limit, MAX_STRENGTH):
                break
        return None

    def _compute_log_likelihood(
        self, counts: Floats, point: Floats, has_ties: bool
    ) -> tuple[float, Floats]:
        """Return the log likelihood, and the probabilities of each pair's three outcomes."""
        leads = point[self.first] - point[self.second] + self.covariates @ point[self.count : -1]
        half_leads = leads / 2
        tie = np.full_like(half_leads, point[-1] if has_ties else -np.inf)
        logs = np.column_stack([half_leads, -half_leads, tie])
        # In logarithms, because very different strengths would overflow.
        logs -= np.logaddexp(np.logaddexp(half_leads, -half_leads), tie)[:, None]
        total = counts[:, :2].ravel() @ logs[:, :2].ravel()
        if has_ties:  # otherwise a tie has weight 0, whose logarithm is infinite
            total += counts[:, 2] @ logs[:, 2]
        return float(total), np.exp(logs)

    def _compute_step(
        self, counts: Floats, chances: Floats, has_ties: bool
    ) -> tuple[Floats, float]:
        """Return Newton's step, and twice the expected gain in likelihood."""
        game_counts = counts.sum(axis=1)
        lead = (chances[:, 0] - chances[:, 1]) / 2  # the expected lead of the first model
        curve = game_counts * ((chances[:, 0] + chances[:, 1]) / 4 - lead**2)
        lead_residuals = (counts[:, 0] - counts[:, 1]) / 2 - game_counts * lead
        size, style = self.count, self.covariates
        # The negative second derivative, in blocks: strengths, style, tie.
        hessian = np.zeros((size + style.shape[1] + 1,) * 2)
        between = np.bincount(self.first * size + self.second, curve, size**2).reshape(size, size)
        hessian[:size, :size] = -between - between.T
        hessian[range(size), range(size)] += self._compute_sums(curve, curve)
        hessian[:size, :size] += max(curve.mean(), 1e-6)  # fixes the mean
        slope = np.zeros(len(hessian))
        slope[:size], slope[size:-1] = (
            self._compute_sums(lead_residuals, -lead_residuals),
            style.T @ lead_residuals,
        )
        hessian[size:-1, size:-1] = style.T @ (curve[:, None] * style)
        for place, of_covariate in enumerate(style.T * curve, start=size):
            cross = self._compute_sums(of_covariate, -of_covariate)
            hessian[:size, place] = hessian[place, :size] = cross
        hessian[-1, -1] = 1.0  # without ties, the last entry of the point does not change
        if has_ties:
            ties = chances[:, 2]
            cross = -game_counts * ties * lead
            hessian[:size, -1] = hessian[-1, :size] = self._compute_sums(cross, -cross)
            hessian[size:-1, -1] = hessian[-1, size:-1] = style.T @ cross
            hessian[-1, -1] = game_counts @ (ties * (1 - ties))
            slope[-1] = counts[:, 2].sum() - game_counts @ ties
        step: Floats = cho_solve(cho_factor(hessian), slope)
        return step, float(step @ slope)

    def _compute_sums(self, first_values: Floats, second_values: Floats) -> Floats:
        """Return, for each model, the sum of its values over its pairs.

        first_values, second_values: one value per pair, for the pair's first and second model.
        """
        first = np.bincount(self.first, first_values, self.count)
        second = np.bincount(self.second, second_values, self.count)
        return (first + second).astype(float)


def rank_models(
    count: int,
    votes: Votes,
    *,
    style: Floats | None = None,
    seed: int = 0,
    draws: int = DRAW_COUNT,
) -> Ranking:
    """Estimate the strengths of models, with intervals by a bootstrap over voters.

    The same votes and seed give the same numbers.

    Parameters
    ----------
    count : int
        The number of models.
    votes : Votes
        The comparisons, at least one.
    style : Floats, optional
        For each vote, how much more of each covariate the left answer has than the right one, shape
        (votes, covariates). A covariate that never differs has no effect.
    seed : int
        The seed of the bootstrap.
    draws : int
        The number of bootstrap draws.

    Returns
    -------
    Ranking
        Strengths by index of the model, and the effects of the covariates.
    """
    # 1. Keep the largest connected group: strengths of other models are not comparable.
    group = find_largest_group(count, votes)
    is_kept = np.isin(votes.left, group)
    left, right, outcome, voter = (column[is_kept] for column in votes[:4])
    weight = votes.full_weight[is_kept]
    first, second = np.searchsorted(group, left), np.searchsorted(group, right)

    # 2. Count the outcomes by pair; with style, each comparison is a pair of its own.
    scale = np.ones(0)
    positions = list(group)  # in `values` below: strengths, then effects
    if style is None:
        pairs, cells = pair_models(len(group), first, second, outcome)
    else:
        # Scaled by their size, so that one bound suits all covariates.
        scale = np.sqrt((style[is_kept] ** 2).mean(axis=0))
        varying_covariates = np.flatnonzero(scale)
        scaled_style = style[is_kept][:, varying_covariates] / scale[varying_covariates]
        pairs = Pairs(len(group), first, second, scaled_style)
        cells = 3 * np.arange(len(left)) + outcome
        positions += list(count + varying_covariates)

    # 3. Fit, and resample voters for the intervals, because their votes are not independent.
    fit = pairs.fit(count_outcomes(pairs, cells, weight))
    values, half_widths = np.full((2, count + len(scale)), np.nan)
    values[positions] = np.concatenate([fit.strengths, fit.style])
    voters, voter = np.unique(voter, return_inverse=True)
    # A single voter would be drawn every time, and every interval would have width 0.
    if len(voters) > 1:
        half_widths[positions] = _compute_half_widths(
            pairs, cells, weight, voter, fit, np.random.default_rng(seed), draws
        )
    values[count:] /= scale  # 0 if the value is unknown anyway
    half_widths[count:] /= scale

    # 4. Rank the models by their intervals; effects have no rank.
    lows, highs = values - half_widths, values + half_widths
    columns = (_replace_nan(column) for column in (values, lows, highs))
    intervals = list(zip(*columns, strict=True))
    ranks = _compute_ranks(values[:count], lows[:count], highs[:count])
    strengths = [
        Strength(value, low, high, rank)
        for (value, low, high), rank in zip(intervals[:count], ranks, strict=True)
    ]
    return Ranking(tuple(strengths), fit.is_bounded, tuple(intervals[count:]))


def _compute_half_widths(
    pairs: Pairs,
    cells: PositionArray,
    weight: Floats,
    voter: PositionArray,
    fit: Fit,
    rng: np.random.Generator,
    draws: int,
) -> Floats:
    """Return the half-widths of the intervals of strengths and effects.

    A half-width is Student's t times the standard deviation over draws of whole voters. The degrees
    of freedom are the effective number of voters of equal size, minus one.
    """
    sizes = np.bincount(voter, weight)
    drawn_points = np.empty((draws, pairs.count + len(fit.style)))
    for draw in range(draws):
        # `minlength`: without it the counts would end at the last voter that was drawn.
        game_counts = np.bincount(rng.integers(len(sizes), size=len(sizes)), minlength=len(sizes))
        # Starts at the fit to all votes, which is only a few steps from that of a draw.
        drawn_fit = pairs.fit(count_outcomes(pairs, cells, weight * game_counts[voter]), fit)
        drawn_points[draw] = np.append(drawn_fit.strengths, drawn_fit.style)
    # The interval is wider with few voters, or with one who votes far more than others.
    freedom = max(sizes.sum() ** 2 / (sizes @ sizes) - 1, 1.0)
    half: Floats = stdtrit(freedom, 0.975) * drawn_points.std(axis=0, ddof=1)
    return half


def pair_models(
    count: int, left: PositionArray, right: PositionArray, outcome: PositionArray
) -> tuple[Pairs, PositionArray]:
    """Return the compared pairs, and the index of each comparison's cell in the flat counts."""
    first, second = np.minimum(left, right), np.maximum(left, right)
    # A number for each pair, by which equal pairs are joined.
    keys, pair = np.unique(first * count + second, return_inverse=True)
    # LEFT and RIGHT (0 and 1) are swapped if the left model is the second of its pair.
    turned = np.where(outcome == TIE, TIE, outcome ^ (left > right))
    return Pairs(count, keys // count, keys % count), 3 * pair + turned


def count_outcomes(pairs: Pairs, cells: PositionArray, weights: Floats | None = None) -> Floats:
    """Count the outcomes of each pair. weights: the weight of each comparison (default: 1)."""
    counts: Floats = np.bincount(cells, weights, 3 * len(pairs.first)).reshape(-1, 3).astype(float)
    return counts


def find_largest_group(count: int, votes: Votes) -> PositionArray:
    """Return the indices of the largest group of models that comparisons connect.

    If groups are of equal size, the one with the first model is returned.
    """
    _, group = _find_groups(count, votes.left, votes.right, "weak")
    return np.flatnonzero(group == np.bincount(group).argmax())


def _find_groups(
    count: int, sources: PositionArray, targets: PositionArray, connection: str
) -> tuple[int, PositionArray]:
    graph = coo_array((np.ones(len(sources)), (sources, targets)), shape=(count, count))
    groups: tuple[int, PositionArray] = connected_components(graph.tocsr(), connection=connection)
    return groups


def _compute_ranks(values: Floats, lows: Floats, highs: Floats) -> list[int | None]:
    """Return shared ranks (1, 1, 3): 1 + the number of models with a wholly higher interval.

    Without intervals all models share rank 1.
    """
    # NaN is never greater, so a model without an interval is not above any other.
    higher_counts = (lows[:, None] > highs[None, :]).sum(axis=0)
    positions = np.flatnonzero(~np.isnan(values))
    ranks: list[int | None] = [None] * len(values)
    for place, rank in zip(
        positions.tolist(), compute_shared_ranks((-higher_counts[positions]).tolist()), strict=True
    ):
        ranks[place] = rank
    return ranks


def _replace_nan(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
