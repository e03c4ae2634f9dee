"""Strengths of models that people compared in pairs: Bradley and Terry's model with ties.

Davidson (1970): with d the strength of the left model minus that of the right one, the left one
wins with weight exp(d/2), the right one with exp(-d/2), and neither with weight exp(tie). Without
ties this is Bradley and Terry's model. docs/arena.md explains the rules. It loads numpy and scipy.
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
DRAWS = 500
MAX_STRENGTH = 30.0
"""A strength or tie beyond this is on its way to infinity."""
MAX_STEPS = 100
TOLERANCE = 1e-10
"""What a further step would add to the likelihood, at most."""
HALF_GAME = 0.5
"""The wins and the losses of each model against the imaginary one."""
Floats = NDArray[np.floating[Any]]
Places = NDArray[np.intp]


class Votes(NamedTuple):
    """Arrays with one entry per comparison.

    left, right: the indices of the models. outcome: which of them won, or a tie. voter: the voter's
    index.
    """

    left: Places
    right: Places
    outcome: Places  # LEFT, RIGHT or TIE
    voter: Places


Interval = tuple[float | None, float | None, float | None]
"""A value with the ends of its 95 % interval; None where unknown."""


@dataclass(frozen=True)
class Strength:
    """The natural logarithm of a model's strength with a 95 % interval; ranked models average 0.

    value: None for a model that no chain of comparisons connects with most others. low, high: None
    also if there is only one voter.
    """

    value: float | None
    low: float | None
    high: float | None
    rank: int | None


@dataclass(frozen=True)
class Ranking:
    """The models' strengths by index, and the effects of their style.

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
    first: Places
    second: Places
    style: Floats = field(default_factory=lambda: np.empty((0, 0)))

    @cached_property
    def covariates(self) -> Floats:
        """Return `style`, with no columns when there are no covariates."""
        if self.style.size:
            return self.style
        return np.empty((len(self.first), 0))

    @cached_property
    def bounded(self) -> "Pairs":
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
        """Return the maximum-likelihood fit, with an imaginary model if it would be infinite.

        Each model has half a win and half a loss against the imaginary one.
        """
        fit = None
        if self._is_strong(counts):
            fit = self._climb(counts, start)
        return fit or self.fit_bounded(counts)

    def fit_bounded(self, counts: Floats) -> Fit:
        """Return the maximum-likelihood fit with the imaginary model, which is always finite."""
        # For each imaginary pair: half a win, half a loss, no tie.
        halves = np.tile([HALF_GAME, HALF_GAME, 0], (self.count + self.covariates.shape[1], 1))
        fit = self.bounded._climb(np.vstack([counts, halves]), None)
        assert fit is not None  # each model has beaten and lost to the imaginary one
        strengths = fit.strengths[:-1]
        return Fit(strengths - strengths.mean(), fit.style, fit.tie, is_bounded=True)

    def _is_strong(self, counts: Floats) -> bool:
        """Return whether every group of models won or tied once against the rest (Ford 1957)."""
        # A tie counts for both sides, as half a win and half a loss.
        won, lost = counts[:, [0, 2]].any(axis=1), counts[:, [1, 2]].any(axis=1)
        winners = np.append(self.first[won], self.second[lost])
        losers = np.append(self.second[won], self.first[lost])
        return _find_groups(self.count, winners, losers, "strong")[0] == 1

    def _climb(self, counts: Floats, start: Fit | None) -> Fit | None:
        """Find the maximum likelihood by Newton's method with step halving; None if infinite."""
        # A point has the strengths, the effects of style and the logarithm of a tie's weight.
        point = np.zeros(self.count + self.covariates.shape[1] + 1)
        has_ties = bool(counts[:, 2].any())
        # A start without a tie's weight cannot begin a fit that has one, nor the other way round.
        if start and (start.tie is not None) == has_ties:
            point = np.concatenate([start.strengths, start.style, [start.tie or 0.0]])
        value, chances = self._likelihood(counts, point, has_ties)
        for _ in range(MAX_STEPS):
            try:
                step, gain = self._step(counts, chances, has_ties)
            except LinAlgError:  # flat to the last digit: on its way to infinity
                return None
            if gain < TOLERANCE:
                strengths = point[: self.count] - point[: self.count].mean()
                tie = float(point[-1]) if has_ties else None
                return Fit(strengths, point[self.count : -1], tie, is_bounded=False)
            previous_value = value
            # A whole step may overshoot; half of it, often enough, raises the likelihood.
            while True:
                value, chances = self._likelihood(counts, point + step, has_ties)
                if value >= previous_value - TOLERANCE:
                    break
                step /= 2
            point = point + step
            # The maximum is at infinity, which the imaginary model avoids.
            if np.abs(point).max() > MAX_STRENGTH:
                break
        return None

    def _likelihood(self, counts: Floats, point: Floats, has_ties: bool) -> tuple[float, Floats]:
        """Return the log likelihood, and the probabilities of each pair's three outcomes."""
        leads = point[self.first] - point[self.second] + self.covariates @ point[self.count : -1]
        half_leads = leads / 2
        tie = np.full_like(half_leads, point[-1] if has_ties else -np.inf)
        logs = np.column_stack([half_leads, -half_leads, tie])
        # In logarithms, because strengths far apart would overflow.
        logs -= np.logaddexp(np.logaddexp(half_leads, -half_leads), tie)[:, None]
        total = counts[:, :2].ravel() @ logs[:, :2].ravel()
        if has_ties:  # else a tie has weight 0, whose logarithm is infinite
            total += counts[:, 2] @ logs[:, 2]
        return float(total), np.exp(logs)

    def _step(self, counts: Floats, chances: Floats, has_ties: bool) -> tuple[Floats, float]:
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
        hessian[range(size), range(size)] += self._sums(curve, curve)
        hessian[:size, :size] += max(curve.mean(), 1e-6)  # holds the mean where it is
        slope = np.zeros(len(hessian))
        slope[:size], slope[size:-1] = (
            self._sums(lead_residuals, -lead_residuals),
            style.T @ lead_residuals,
        )
        hessian[size:-1, size:-1] = style.T @ (curve[:, None] * style)
        for place, of_covariate in enumerate(style.T * curve, start=size):
            cross = self._sums(of_covariate, -of_covariate)
            hessian[:size, place] = hessian[place, :size] = cross
        hessian[-1, -1] = 1.0  # without ties the last entry of the point stays where it is
        if has_ties:
            ties = chances[:, 2]
            cross = -game_counts * ties * lead
            hessian[:size, -1] = hessian[-1, :size] = self._sums(cross, -cross)
            hessian[size:-1, -1] = hessian[-1, size:-1] = style.T @ cross
            hessian[-1, -1] = game_counts @ (ties * (1 - ties))
            slope[-1] = counts[:, 2].sum() - game_counts @ ties
        step: Floats = cho_solve(cho_factor(hessian), slope)
        return step, float(step @ slope)

    def _sums(self, of_first: Floats, of_second: Floats) -> Floats:
        """Return each model's sum over its pairs."""
        first = np.bincount(self.first, of_first, self.count)
        second = np.bincount(self.second, of_second, self.count)
        return (first + second).astype(float)


def rank_models(
    count: int,
    votes: Votes,
    *,
    style: Floats | None = None,
    seed: int = 0,
    draws: int = DRAWS,
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
    # 1. Keep the largest connected group: others have no strength that compares with it.
    group = find_largest_group(count, votes)
    is_kept = np.isin(votes.left, group)
    left, right, outcome, voter = (column[is_kept] for column in votes)
    first, second = np.searchsorted(group, left), np.searchsorted(group, right)

    # 2. Count the outcomes by pair; with style, each comparison is a pair of its own.
    scale = np.ones(0)
    places = list(group)  # in `values` below: strengths, then effects
    if style is None:
        pairs, cells = pair_models(len(group), first, second, outcome)
    else:
        # In units of their size, so that one bound suits all covariates.
        scale = np.sqrt((style[is_kept] ** 2).mean(axis=0))
        varying_covariates = np.flatnonzero(scale)
        scaled_style = style[is_kept][:, varying_covariates] / scale[varying_covariates]
        pairs = Pairs(len(group), first, second, scaled_style)
        cells = 3 * np.arange(len(left)) + outcome
        places += list(count + varying_covariates)

    # 3. Fit, and draw whole voters for the intervals, as their votes are not independent.
    fit = pairs.fit(count_outcomes(pairs, cells))
    values, halves = np.full((2, count + len(scale)), np.nan)
    values[places] = np.concatenate([fit.strengths, fit.style])
    voters, voter = np.unique(voter, return_inverse=True)
    if len(voters) > 1:
        halves[places] = _compute_half_widths(
            pairs, cells, voter, fit, np.random.default_rng(seed), draws
        )
    values[count:] /= scale  # 0 where the value is unknown anyway
    halves[count:] /= scale

    # 4. Rank the models by their intervals; effects have no rank.
    lows, highs = values - halves, values + halves
    columns = (_replace_nan(column) for column in (values, lows, highs))
    intervals = list(zip(*columns, strict=True))
    ranks = _compute_ranks(values[:count], lows[:count], highs[:count])
    strengths = [
        Strength(value, low, high, rank)
        for (value, low, high), rank in zip(intervals[:count], ranks, strict=True)
    ]
    return Ranking(tuple(strengths), fit.is_bounded, tuple(intervals[count:]))


def _compute_half_widths(
    pairs: Pairs, cells: Places, voter: Places, fit: Fit, chance: np.random.Generator, draws: int
) -> Floats:
    """Return the half-widths of the intervals of strengths and effects.

    A half-width is Student's t times the standard deviation over draws of whole voters. The degrees
    of freedom are the effective number of voters of equal size, minus one.
    """
    sizes = np.bincount(voter)
    drawn_points = np.empty((draws, pairs.count + len(fit.style)))
    for draw in range(draws):
        times = np.bincount(chance.integers(len(sizes), size=len(sizes)), minlength=len(sizes))
        # From the fit to all votes it is only a few steps to that of a draw.
        drawn_fit = pairs.fit(count_outcomes(pairs, cells, times[voter]), fit)
        drawn_points[draw] = np.append(drawn_fit.strengths, drawn_fit.style)
    # With few voters, or one who votes far more than others, the interval is wider.
    freedom = max(sizes.sum() ** 2 / (sizes @ sizes) - 1, 1.0)
    half: Floats = stdtrit(freedom, 0.975) * drawn_points.std(axis=0, ddof=1)
    return half


def pair_models(count: int, left: Places, right: Places, outcome: Places) -> tuple[Pairs, Places]:
    """Return the compared pairs, and the index of each comparison's cell in the flat counts."""
    first, second = np.minimum(left, right), np.maximum(left, right)
    # A number for each pair, by which equal pairs are joined.
    keys, pair = np.unique(first * count + second, return_inverse=True)
    # LEFT and RIGHT (0 and 1) change places where the left model is the second of its pair.
    turned = np.where(outcome == TIE, TIE, outcome ^ (left > right))
    return Pairs(count, keys // count, keys % count), 3 * pair + turned


def count_outcomes(pairs: Pairs, cells: Places, times: Places | None = None) -> Floats:
    """Count the outcomes of each pair. times: the weight of each comparison (default: 1)."""
    counts: Floats = np.bincount(cells, times, 3 * len(pairs.first)).reshape(-1, 3).astype(float)
    return counts


def find_largest_group(count: int, votes: Votes) -> Places:
    """Return the indices of the largest group of models that comparisons connect.

    If groups are of equal size, the one with the first model is returned.
    """
    _, group = _find_groups(count, votes.left, votes.right, "weak")
    return np.flatnonzero(group == np.bincount(group).argmax())


def _find_groups(
    count: int, sources: Places, targets: Places, connection: str
) -> tuple[int, Places]:
    graph = coo_array((np.ones(len(sources)), (sources, targets)), shape=(count, count))
    groups: tuple[int, Places] = connected_components(graph.tocsr(), connection=connection)
    return groups


def _compute_ranks(values: Floats, lows: Floats, highs: Floats) -> list[int | None]:
    """Return shared ranks (1, 1, 3): 1 + the number of models with a wholly higher interval.

    Without intervals all models share rank 1.
    """
    # NaN is never greater, so a model without an interval is above no other.
    higher_counts = (lows[:, None] > highs[None, :]).sum(axis=0)
    places = np.flatnonzero(~np.isnan(values))
    ranks: list[int | None] = [None] * len(values)
    for place, rank in zip(
        places.tolist(), compute_shared_ranks((-higher_counts[places]).tolist()), strict=True
    ):
        ranks[place] = rank
    return ranks


def _replace_nan(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
