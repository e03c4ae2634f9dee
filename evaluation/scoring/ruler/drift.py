"""Find items that have become easier or harder for later models of the same ability. Pure.

If an item's text leaked into training data, later models get it right more often than their ability
explains. If its meaning has changed, such as the name of an office holder, they get it wrong. Both
are differential item functioning (Holland and Wainer 1993) between earlier and later models.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from evaluation.scoring.corrections import adjust_by_benjamini_hochberg
from evaluation.scoring.ruler.prediction import Floats
from evaluation.scoring.ruler.response_model import ItemProperties, estimate_abilities

MIN_SIDE_MODELS = 10
"""The fewest models before and after the day: with fewer, chance looks like drift."""
FALSE_SHARE = 0.05
"""The expected share of items without drift among those that are flagged."""
MEDIAN_OF_NORMAL = 0.6745
"""The median of |z| for a standard normal z."""


class TooFewOnOneSide(ValueError):
    """Raised if too few models came before or after the day that divides them."""


@dataclass(frozen=True)
class ItemDrift:
    """How items differ between earlier and later models. All arrays have one value an item."""

    shifts: Floats
    """The change of the logit of a right answer for later models, at the same ability."""
    errors: Floats
    """Standard errors of the shifts."""
    is_flagged: NDArray[np.bool_]
    """Which items drift, if at most 5 % of the flags shall be false."""


def measure_drift(
    is_right: NDArray[np.bool_],
    is_answered: NDArray[np.bool_],
    is_later: NDArray[np.bool_],
    properties: ItemProperties,
) -> ItemDrift:
    """Return the drift of each item. Items without stated properties have NaN.

    Parameters
    ----------
    is_right, is_answered
        One row for each model, one column for each item.
    is_later
        For each model whether it came after the day.
    properties
        What `fit_items` says about the items, from all models.

    Raises
    ------
    TooFewOnOneSide
        If fewer than `MIN_SIDE_MODELS` came before or after.

    Notes
    -----
    Rao's score test of an indicator of later models in each item's logistic regression, given
    ability (Swaminathan and Rogers 1990). The shift is one step of Newton's method from 0. Real
    answers follow no response model exactly, so many items seem to drift a little. The statistics
    are divided by their own spread over items where it is above 1 (genomic control, Devlin and
    Roeder 1999): what most items do is no drift. Flags follow Benjamini and Hochberg (1995).
    """
    sides = (int((~is_later).sum()), int(is_later.sum()))
    if min(sides) < MIN_SIDE_MODELS:
        raise TooFewOnOneSide(f"{sides[0]} earlier and {sides[1]} later models.")
    abilities = estimate_abilities(
        properties.discriminations, properties.intercepts, is_right, is_answered
    ).means
    chances = properties.compute_chances(abilities)
    residuals = np.where(is_answered, is_right - chances, 0.0)
    weights = np.where(is_answered, chances * (1 - chances), 0.0)

    later = is_later.astype(float)
    scores = later @ residuals
    variances = later @ weights - _explain_by_parameters(weights, abilities, later, properties)
    # An item that all later models answered alike tells nothing of a shift.
    tells = properties.is_stated & (variances > 1e-6)
    variances = np.where(tells, variances, np.nan)
    statistics = scores / np.sqrt(variances)
    spread = 1.0
    if tells.any():
        spread = max(1.0, float(np.nanmedian(np.abs(statistics))) / MEDIAN_OF_NORMAL)
    shifts, errors = scores / variances, spread / np.sqrt(variances)
    p_values = 2 * ndtr(-np.abs(statistics) / spread)
    return ItemDrift(shifts, errors, select_by_false_share(p_values, FALSE_SHARE))


def _explain_by_parameters(
    weights: Floats, abilities: Floats, later: Floats, properties: ItemProperties
) -> Floats:
    """Return how much of the score's variance the item's own two parameters take up.

    They were estimated from the same answers, also from those of later models.
    """
    first = (later * abilities) @ weights
    second = later @ weights
    crossed = np.column_stack([first, second])
    # The inverse information of an item is the covariance of its parameters.
    return np.asarray(np.einsum("ij,ijk,ik->i", crossed, properties.covariances, crossed))


def select_by_false_share(p_values: Floats, share: float) -> NDArray[np.bool_]:
    """Return which p-values stand out, if at most this share of them shall be false.

    NaN never stands out (Benjamini and Hochberg 1995).

    >>> select_by_false_share(np.array([0.001, 0.5, np.nan, 0.03]), 0.05)
    array([ True, False, False,  True])
    """
    is_known = ~np.isnan(p_values)
    selected = np.zeros(len(p_values), dtype=bool)
    adjusted = adjust_by_benjamini_hochberg(p_values[is_known].tolist())
    selected[is_known] = np.array(adjusted) <= share
    return selected
