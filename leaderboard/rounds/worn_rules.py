"""The rule for the day on which a round stopped telling models apart. Pure.

Models are ordered by the day from which they could be compared on the round. The rule looks for the
day from which all newer models' scores differ no more than chance. See docs/statistics.md,
"Worn-out rounds".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

Floats = NDArray[np.float64]
MIN_MODELS = 8
"""With fewer models nothing is said."""
MIN_NEWEST = 5
"""So many of the newest models must not differ before a round counts as worn out."""
MIN_EXAMPLES = 100
"""On fewer examples chance is so large that nearly all models seem alike."""
LEVEL = 0.05
PROFILE_DROP = 6.63
"""Days whose cost is at most this much above the smallest are in the interval: χ² of 0.99, 1 df.

The last days before the change cost little, so χ² of 0.95 would end too early in a fifth of cases.
"""


class WornState(StrEnum):
    """Whether a round still tells the newest models apart."""

    TOO_FEW = "too_few"
    NOT_YET = "not_yet"
    WORN = "worn"


@dataclass(frozen=True)
class DatedScore:
    """A model's share of right answers (0-1) on a round. day: when it could first be compared."""

    day: date
    value: float
    n: int  # examples


@dataclass(frozen=True)
class WornDay:
    """The day from which newer models differ no more than chance, with its 95 % interval.

    models: how many models have come since that day. All dates are None unless worn.
    """

    state: WornState
    day: date | None = None
    low: date | None = None
    high: date | None = None
    models: int = 0


def find_worn_day(scores: Sequence[DatedScore], rounding_step: float = 0.0) -> WornDay:
    """Return since when a round has not told models apart.

    Parameters
    ----------
    scores
        Of the models that people did not write against, in any order.
    rounding_step
        The step (0-1) to which scores are rounded on a sealed set; 0 if they are exact.

    Notes
    -----
    For each day d, Q(d) is the weighted sum of squares of the scores of models from d on around
    their mean (Cochran 1954). With equal models it has a χ² distribution. Each model before d has
    a score of its own, which costs log(models), as in the Bayesian information criterion
    (Schwarz 1978). The day has the smallest cost Q(d) + log(models) × models before d among those
    whose Q(d) is not rejected at 5 %. The interval begins with the first day that is not rejected,
    and ends with the last one whose cost is at most 6.63 above the smallest.
    """
    is_small = not scores or min(score.n for score in scores) < MIN_EXAMPLES
    if is_small or len(scores) < MIN_MODELS:
        return WornDay(WornState.TOO_FEW)
    ordered = sorted(scores, key=lambda score: score.day)
    statistics = _compute_tail_statistics(ordered, rounding_step)
    costs: dict[int, float] = {}
    for place in _list_first_places(ordered):
        newer_count = len(ordered) - place
        is_alike = newer_count < 2 or chdtrc(newer_count - 1, statistics[place]) >= LEVEL
        if is_alike:
            costs[place] = float(statistics[place]) + log(len(ordered)) * place
    # The models of the last day may differ among themselves.
    if not costs:
        return WornDay(WornState.NOT_YET)
    place = min(costs, key=lambda first: (costs[first], first))
    models = len(ordered) - place
    if models < MIN_NEWEST:
        return WornDay(WornState.NOT_YET)
    # Only days whose tail isn't rejected have a cost.
    near = [other for other, cost in costs.items() if cost <= costs[place] + PROFILE_DROP]
    return WornDay(
        WornState.WORN,
        ordered[place].day,
        low=ordered[min(costs)].day,
        high=ordered[max(near)].day,
        models=models,
    )


def _list_first_places(ordered: Sequence[DatedScore]) -> list[int]:
    """Return the place of the first model of each day: models of one day have no order."""
    places = []
    for place, score in enumerate(ordered):
        if place == 0 or ordered[place - 1].day != score.day:
            places.append(place)
    return places


def _compute_tail_statistics(ordered: Sequence[DatedScore], rounding_step: float) -> Floats:
    """Return Cochran's Q of the models from each place on."""
    values = np.array([score.value for score in ordered])
    n = np.array([score.n for score in ordered], dtype=float)
    # Agresti and Coull's two more of each kind: a model that is always right varies, too.
    shares = (values * n + 2) / (n + 4)
    # Rounding moves a score by at most half a step. Scores near a border between two steps move
    # as far apart as that, so the mean square of a uniform error would be too little.
    weights = 1 / (shares * (1 - shares) / n + rounding_step**2 / 4)
    weight_sums = _sum_from_the_end(weights)
    value_sums = _sum_from_the_end(weights * values)
    square_sums = _sum_from_the_end(weights * values**2)
    statistics: Floats = np.maximum(0.0, square_sums - value_sums**2 / weight_sums)
    return statistics


def _sum_from_the_end(values: Floats) -> Floats:
    sums: Floats = np.cumsum(values[::-1])[::-1]
    return sums
