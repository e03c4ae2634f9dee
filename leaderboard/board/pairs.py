"""Which models of a board are surely better than which others. It loads numpy."""

from math import sqrt
from typing import cast

import numpy as np

from leaderboard.board.matrix import Floats, Marks
from leaderboard.board.means import Draws
from leaderboard.scoring.ranks import ALPHA, NORMAL

LEAST = np.float32(1e-20)
"""Variance of a difference that no draw shows; so it is sure."""
FEW = 60
"""Fewer examples than that bound how sure a difference can be."""


def sure_pairs(
    values: Floats,
    draws: Draws,
    examples: int,
    best: tuple[Floats, Draws] | None = None,
) -> Marks:
    """Return a matrix whose [i, j] says whether model i is surely better than model j.

    Paired differences are tested with Holm's correction: each is compared with the standard error
    of its draws, and its p is never below that of the rarest flip of signs of so many examples.
    best: values and draws in the best case, for scores that are ranges. `values` and `draws` are
    then those of the worst case, and a model is surely better if its worst case is better than the
    other's best.
    """
    count, freedom = len(values), draws.shape[-1] - 1
    pairs = count * (count - 1) // 2
    if not pairs:
        return np.zeros((count, count), dtype=bool)
    top_values, top_draws = best or (values, draws)
    centred = _centred(draws)
    top = centred if best is None else _centred(top_draws)
    variance = centred @ top.T
    own = variance.diagonal().copy() if best is None else (centred**2).sum(axis=1)
    top_own = own if best is None else (top**2).sum(axis=1)
    variance *= -2
    variance += top_own
    variance += own[:, None]
    np.maximum(variance, LEAST, out=variance)
    middle = values.mean()  # in single precision near 0
    lead = (values - middle).astype(np.float32)[:, None] - (top_values - middle).astype(np.float32)
    lead *= np.abs(lead)
    lead /= variance  # t², with the sign of the difference
    if examples < FEW:
        np.minimum(lead, bar(2.0 ** (1 - max(1, examples)), freedom), out=lead)
    # Holm steps down as long as the next smallest p passes; each look here does many such steps.
    found, sure = 0, lead >= bar(ALPHA / pairs, freedom)
    while found < (now := int(np.count_nonzero(sure))) < pairs:
        found, sure = now, lead >= bar(ALPHA / (pairs - now), freedom)
    return cast(Marks, sure)


def _centred(draws: Draws) -> Draws:
    found: Draws = (draws - draws.mean(axis=1, keepdims=True)) / np.float32(
        sqrt(draws.shape[-1] - 1)
    )
    return found


def bar(p: float, freedom: int) -> float:
    """Return t² of a two-sided p, by the first terms of Fisher and Cornish (1960)."""
    z = -NORMAL.inv_cdf(p / 2)
    return (z + (z**3 + z) / (4 * freedom)) ** 2
