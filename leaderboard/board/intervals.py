"""Intervals of means over sets, and draws that agree with them. It loads numpy."""

import numpy as np
from numpy.typing import NDArray

from leaderboard.board.matrix import Floats, Numbers
from leaderboard.scoring.ranks import ALPHA


def mean_with_ends(
    numbers: Numbers, used: NDArray[np.int64], weights: Floats
) -> tuple[Floats, Floats, Floats]:
    """Weighted means over sets and the ends of their intervals, models × metrics each.

    weights: used sets × metrics, of sum 1 for each metric. The sets are independent, so the squares
    of weighted half-widths add up, to each side (method MOVER, Zou and Donner 2008). A mean over
    one set has that set's interval.
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


def stretch(draws: NDArray[np.float32], values: Floats, low: Floats, high: Floats) -> Floats:
    """Draws of one metric, models × draws, so that 95 % of them lie between the ends.

    What lies below the value and what lies above it keeps its shape. Those of a model without an
    interval stay.
    """
    found = draws.astype(float)
    ends = _ends(found)
    gains = found - values[:, None]
    for side, end, drawn_end in ((gains < 0, low, ends[0]), (gains > 0, high, ends[1])):
        wide, narrow = end - values, drawn_end - values
        with np.errstate(divide="ignore", invalid="ignore"):
            factors = np.where((wide * narrow > 0) & ~np.isnan(wide), wide / narrow, 1.0)
        gains = np.where(side, gains * factors[:, None], gains)
    return np.nan_to_num(values)[:, None] + np.nan_to_num(gains)


def ends_around(values: Floats, draws: Floats, unsure: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The 2.5 and 97.5 % quantiles of numbers' draws, which are never on one side of a number.

    NaN where there is none: of numbers that are unsure, or that were measured once.
    """
    nothing = np.full(len(values), np.nan)
    if draws.shape[1] == 1:
        return nothing, nothing
    ends = _ends(draws)
    low, high = np.minimum(values, ends[0]), np.maximum(values, ends[1])  # NaN without a value
    return np.where(unsure, nothing, low), np.where(unsure, nothing, high)


def _ends(draws: Floats) -> list[Floats]:
    """The 2.5 and the 97.5 % quantile of each model's draws."""
    ordered = np.sort(draws, axis=-1)
    ends = []
    for share in (ALPHA / 2, 1 - ALPHA / 2):
        at, rest = divmod(share * (draws.shape[1] - 1), 1)
        one, next_one = ordered[:, int(at)], ordered[:, int(at) + 1]
        ends.append(one + rest * (next_one - one))
    return ends
