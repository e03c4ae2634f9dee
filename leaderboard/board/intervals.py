"""Intervals of means over sets, and of scores made of several metrics. It loads numpy."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from leaderboard.board.matrix import Floats, Numbers
from leaderboard.ranking.anchored import SCORE_DECIMALS

Formula = Callable[[Mapping[str, Floats]], Floats]
"""A function from metrics to a score of each model; it is monotone in each metric."""
Ends = Mapping[str, tuple[Floats, Floats]]
"""The low and the high ends of all models' intervals, by metric."""


def compute_mean_with_ends(
    numbers: Numbers, used_sets: NDArray[np.int64], weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return weighted means over sets and the ends of their intervals, models × metrics each.

    weights: used sets × metrics, adding up to 1 for each metric. The sets are independent, so the
    squares of weighted half-widths add up on each side (method MOVER, Zou and Donner 2008). A mean
    over one set has that set's interval.
    """
    # Their weight is 0, but 0 × NaN would be NaN.
    is_undefined = numbers.undefined[used_sets]
    value = np.where(is_undefined, 0.0, numbers.values[:, used_sets])
    low_ends = np.where(is_undefined, 0.0, numbers.low[:, used_sets])
    high_ends = np.where(is_undefined, 0.0, numbers.high[:, used_sets])
    values = np.einsum("msk,sk->mk", value, weights)
    low = values - np.sqrt(np.einsum("msk,sk->mk", (value - low_ends) ** 2, weights**2))
    high = values + np.sqrt(np.einsum("msk,sk->mk", (high_ends - value) ** 2, weights**2))
    for place, metric in np.argwhere(weights == 1):  # exactly, without a tolerance
        low[:, metric], high[:, metric] = low_ends[:, place, metric], high_ends[:, place, metric]
    return values, low, high


def compute_correlations(draws: NDArray[np.float32]) -> Floats:
    """Return correlations of metrics over the same resamples: metrics × metrics × models.

    draws: metrics × models × draws. A metric without variance correlates only with itself.
    """
    centred_draws = draws - draws.mean(axis=-1, keepdims=True)
    length = np.sqrt((centred_draws**2).sum(axis=-1, keepdims=True))
    # Metrics that never vary have length 0, and remain zeros.
    unit = centred_draws / np.where(length, length, 1)
    correlation: Floats = np.einsum("imd,jmd->ijm", unit, unit).astype(float)
    for metric in range(len(correlation)):
        # Even without variance, because its score would otherwise lose its half-width.
        correlation[metric, metric] = 1.0
    return correlation


def compute_ends(
    formula: Formula, values: Mapping[str, Floats], ends: Ends, correlation: Floats
) -> tuple[Floats, Floats]:
    """Return the ends of a formula's interval from those of its metrics, by the MOVER method.

    A metric contributes as far as the score moves when that metric moves to an end of its interval.
    The contributions add up as correlated errors do (Zou and Donner 2008, equation 5). So a score
    of one metric has that metric's interval. Resamples give only the correlations, which hardly
    move an end. correlation: the correlations of the metrics of `ends`, in their order.
    """
    score = formula(values)
    step_list = []
    for name, (low_end, high_end) in ends.items():
        to_low = formula({**values, name: low_end}) - score
        to_high = formula({**values, name: high_end}) - score
        step_list.append([to_low, to_high])
    steps = np.array(step_list)  # metrics × low and high × models
    # If one of two metrics lowers the score, their correlation changes its sign.
    signs = np.where(steps[:, 0] > steps[:, 1], -1, 1)  # -1: metrics of which less is better
    signed_correlation = correlation * signs[:, None] * signs
    # If less is better, the high end of the metric lowers the score.
    lower_length = _compute_length(np.minimum(0, steps.min(1)), signed_correlation)
    upper_length = _compute_length(np.maximum(0, steps.max(1)), signed_correlation)
    # Rounded: the last digits depend on how many models are summed at once.
    low = np.minimum(score, np.round(score - lower_length, SCORE_DECIMALS))
    high = np.maximum(score, np.round(score + upper_length, SCORE_DECIMALS))
    return low, high


def _compute_length(contributions: Floats, correlation: Floats) -> Floats:
    """Return the square root of the correlated sum of products. contributions: metrics × models."""
    squared = np.einsum("im,ijm,jm->m", contributions, correlation, contributions)
    length: Floats = np.sqrt(np.maximum(squared, 0))  # rounding may give just below 0
    return length


def compute_difference_ends(
    values: Sequence[float], ends: Sequence[Sequence[float]], correlation: float
) -> tuple[float, float]:
    """Return the ends of the interval of the difference of two numbers, by the MOVER method."""
    (first, second), ((first_low, first_high), (second_low, second_high)) = values, ends
    below = _compute_joint_half_width(first - first_low, second_high - second, correlation)
    above = _compute_joint_half_width(first_high - first, second - second_low, correlation)
    return first - second - below, first - second + above


def _compute_joint_half_width(first: float, second: float, correlation: float) -> float:
    """Combine the half-widths of two numbers into one side's half-width of their difference."""
    squared = first * first + second * second - 2 * correlation * first * second
    return float(max(0.0, squared) ** 0.5)
