"""Tests of which models of a board are significantly better than which others. Loads numpy."""

from math import sqrt
from typing import cast

import numpy as np

from leaderboard.board.matrix import Floats, Marks
from leaderboard.board.means import Draws
from leaderboard.ranking.ranks import ALPHA, STANDARD_NORMAL

MIN_VARIANCE = np.float32(1e-20)
"""The variance used for a difference that is the same in all draws, and so is certain."""
MIN_EXAMPLES = 60
"""If there are fewer examples, their number limits how significant a difference can be."""


def find_significant_pairs(
    values: Floats,
    draws: Draws,
    examples: int,
    best_case: tuple[Floats, Draws] | None = None,
) -> Marks:
    """Return a matrix whose entry [i, j] is whether model i is significantly better than model j.

    Paired differences are compared with the standard errors of their draws, with Holm's
    correction. No p is below that of the rarest sign flip of `examples` examples.
    best_case: values and draws in the best case, for scores that are ranges. `values` and `draws`
    are then those of the worst case. A model is better if its worst case is significantly better
    than the other's best.
    """
    count, degrees_of_freedom = len(values), draws.shape[-1] - 1
    pairs = count * (count - 1) // 2
    if not pairs:
        return np.zeros((count, count), dtype=bool)
    top_values, _top_draws = best_case or (values, draws)
    variance = _compute_difference_variance(draws, best_case[1] if best_case else None)
    mean_value = values.mean()  # values near 0 lose less in single precision
    lead = (values - mean_value).astype(np.float32)[:, None] - (top_values - mean_value).astype(
        np.float32
    )
    # In place, because with 1,000 models each such array takes 4 MB.
    lead *= np.abs(lead)
    lead /= variance  # t², with the sign of the difference
    # With few examples, even the rarest flip of signs sometimes happens by chance.
    if examples < MIN_EXAMPLES:
        np.minimum(
            lead,
            compute_critical_value(2.0 ** (1 - max(1, examples)), degrees_of_freedom),
            out=lead,
        )
    # Holm steps down as long as the next smallest p passes; each pass here does many steps.
    previous_count, is_sure = 0, lead >= compute_critical_value(ALPHA / pairs, degrees_of_freedom)
    sure_count = int(np.count_nonzero(is_sure))
    while previous_count < sure_count < pairs:
        previous_count, is_sure = (
            sure_count,
            lead >= compute_critical_value(ALPHA / (pairs - sure_count), degrees_of_freedom),
        )
        sure_count = int(np.count_nonzero(is_sure))
    return cast(Marks, is_sure)


def _compute_difference_variance(draws: Draws, best_draws: Draws | None) -> Draws:
    """Return the variances of all differences over the draws, by model i and model j.

    best_draws: the draws of model j if they differ from `draws`.
    """
    centred_draws = _centre_draws(draws)
    if best_draws is None:
        variance = centred_draws @ centred_draws.T
        # Copied, because the diagonal is a view of an array that is changed below.
        own_variance = top_variance = variance.diagonal().copy()
    else:
        top = _centre_draws(best_draws)
        variance = centred_draws @ top.T
        own_variance, top_variance = (centred_draws**2).sum(axis=1), (top**2).sum(axis=1)
    # Var(a − b) = Var(a) + Var(b) − 2 Cov(a, b)
    variance *= -2
    variance += top_variance
    variance += own_variance[:, None]
    # Rounding may give 0 or less, by which a lead cannot be divided.
    np.maximum(variance, MIN_VARIANCE, out=variance)
    return variance


def _centre_draws(draws: Draws) -> Draws:
    """Return the draws centred at 0 and scaled so that their products are covariances."""
    scale = np.float32(sqrt(draws.shape[-1] - 1))
    centred: Draws = (draws - draws.mean(axis=1, keepdims=True)) / scale
    return centred


def compute_critical_value(p: float, degrees_of_freedom: int) -> float:
    """Return the critical t² for a two-sided p, by the first terms of Fisher and Cornish (1960)."""
    z = -STANDARD_NORMAL.inv_cdf(p / 2)
    return (z + (z**3 + z) / (4 * degrees_of_freedom)) ** 2
