"""Intervals of means over sets, and of scores made of several metrics. It loads numpy."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leaderboard.board.matrix import Floats, Numbers
from leaderboard.scoring.anchored import ALIKE

Formula = Callable[[Mapping[str, Floats]], Floats]
"""A score of each model by its metrics; it rises, or falls, all the way with each of them."""
Ends = Mapping[str, tuple[Floats, Floats]]
"""By metric the low and the high end of each model's interval."""


def mean_with_ends(
    numbers: Numbers, used: NDArray[np.int64], weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return weighted means over sets and the ends of their intervals, models × metrics each.

    weights: used sets × metrics, adding up to 1 for each metric. The sets are independent, so the
    squares of weighted half-widths add up, to each side (method MOVER, Zou and Donner 2008). A mean
    over one set has that set's interval.
    """
    is_undefined = numbers.undefined[used]
    value, below, above = (
        np.where(is_undefined, 0.0, some[:, used])
        for some in (numbers.values, numbers.low, numbers.high)
    )
    values = np.einsum("msk,sk->mk", value, weights)
    low = values - np.sqrt(np.einsum("msk,sk->mk", (value - below) ** 2, weights**2))
    high = values + np.sqrt(np.einsum("msk,sk->mk", (above - value) ** 2, weights**2))
    for place, metric in np.argwhere(weights == 1):  # exactly: not up to the last digit
        low[:, metric], high[:, metric] = below[:, place, metric], above[:, place, metric]
    return values, low, high


def correlations(draws: NDArray[np.float32]) -> Floats:
    """Return correlations of metrics over the same resamples: metrics × metrics × models.

    draws: metrics × models × draws. What does not vary correlates only with itself.
    """
    centred = draws - draws.mean(axis=-1, keepdims=True)
    length = np.sqrt((centred**2).sum(axis=-1, keepdims=True))
    unit = centred / np.where(length, length, 1)
    found: Floats = np.einsum("imd,jmd->ijm", unit, unit).astype(float)
    for metric in range(len(found)):
        found[metric, metric] = 1.0
    return found


def ends_of(
    formula: Formula, values: Mapping[str, Floats], ends: Ends, correlation: Floats
) -> tuple[Floats, Floats]:
    """Return the ends of the interval of a formula of metrics that have intervals: method MOVER.

    How far the score moves when one metric moves to an end of its interval is that metric's part of
    the half-width, and the parts add up as correlated errors do (Zou and Donner 2008, equation 5).
    So a score of one metric has that metric's interval. Resamples give only the correlations, which
    hardly move an end. correlation: of the metrics of `ends`, in their order.
    """
    score = formula(values)
    steps = np.array(
        [[formula({**values, name: end}) - score for end in both] for name, both in ends.items()]
    )  # metrics × low and high × models
    signs = np.where(steps[:, 0] > steps[:, 1], -1, 1)  # -1: of which less is better
    signed = correlation * signs[:, None] * signs
    low, high = (
        _length(side, signed) for side in (np.minimum(0, steps.min(1)), np.maximum(0, steps.max(1)))
    )
    # Rounded: the last digits depend on how many models are summed at once.
    return np.minimum(score, np.round(score - low, ALIKE)), np.maximum(
        score, np.round(score + high, ALIKE)
    )


def _length(parts: Floats, correlation: Floats) -> Floats:
    """Return the root of the sum of correlated parts' products. parts: metrics × models."""
    squared = np.einsum("im,ijm,jm->m", parts, correlation, parts)
    found: Floats = np.sqrt(np.maximum(squared, 0))
    return found


def difference_ends(
    values: Sequence[float], ends: Sequence[Sequence[float]], correlation: float
) -> tuple[float, float]:
    """Return the ends of the interval of a difference of two numbers: method MOVER."""
    (one, other), ((one_low, one_high), (other_low, other_high)) = values, ends
    sides = ((one - one_low, other_high - other), (one_high - one, other - other_low))
    low, high = (max(0.0, a * a + b * b - 2 * correlation * a * b) ** 0.5 for a, b in sides)
    return one - other - low, one - other + high
