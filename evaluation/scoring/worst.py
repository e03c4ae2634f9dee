"""Find the worst of several parts of the examples, such as kinds of perturbation or groups. Pure.

docs/statistics.md, “Scores of models”, explains the intervals.
"""

from collections.abc import Sequence
from itertools import permutations
from math import hypot
from statistics import NormalDist

from evaluation.contract import LEAST_RESAMPLED, Number

WORST_KIND, WORST_KIND_DROP = "worst_kind", "worst_kind_drop"
WORST_GROUP, GROUP_GAP = "worst_group", "group_gap"


def select_comparable(parts: Sequence[Number]) -> list[Number]:
    """Return the parts with enough examples, which depends only on the set and not on the model."""
    return [part for part in parts if part.value is not None and part.n >= LEAST_RESAMPLED]


def find_worst(parts: Sequence[Number]) -> Number | None:
    """Return the comparable part with the lowest value; None if no part is comparable.

    Ties go to the first by kind and slice.
    """

    def order(part: Number) -> tuple[float, str, str]:
        return _get_value(part), part.kind, part.slice

    return min(select_comparable(parts), key=order, default=None)


def compute_least(metric: str, parts: Sequence[Number]) -> Number:
    """Return the lowest value of the comparable parts, with an interval; n is the smallest part's.

    Parameters
    ----------
    metric
        The metric name of the returned number.
    parts
        Numbers of one metric on several parts.

    Notes
    -----
    Whichever part is truly the worst, its value is at least its own low end, and so at least the
    lowest of all low ends. For the high end, all high ends must hold at once, so they are widened
    by Bonferroni's correction.
    """
    compared_parts = select_comparable(parts)
    if not compared_parts:
        return Number(metric, None, None, None, 0)
    # Without an interval if one of the parts has none.
    low = high = None
    part_ends = _list_ends(compared_parts)
    if part_ends:
        widening = _compute_widening(len(compared_parts))
        low = min(part_low for _, part_low, _ in part_ends)
        high = 1.0
        for value, _, part_high in part_ends:
            high = min(high, value + widening * (part_high - value))
    n = min(part.n for part in compared_parts)
    return Number(metric, min(map(_get_value, compared_parts)), low, high, n)


def compute_gap(metric: str, parts: Sequence[Number]) -> Number:
    """Return the largest difference between two comparable parts; n is the smallest part's.

    Parameters
    ----------
    metric
        The metric name of the returned number.
    parts
        Numbers of one metric on several parts.

    Notes
    -----
    The interval of each difference is Newcombe's (1998, method 10), as if the parts shared no
    examples. For the low end, the greatest of all low ends, all of them must hold at once, so they
    are widened by Bonferroni's correction.
    """
    compared_parts = select_comparable(parts)
    if len(compared_parts) < 2:
        return Number(metric, None, None, None, 0)
    low = high = None
    ends = _list_ends(compared_parts)
    if ends:
        pairs = list(permutations(ends, 2))
        widening = _compute_widening(len(pairs))
        # Each pair comes in both orders, so some difference is 0 or more.
        low, high = 0.0, -1.0
        for (a, a_low, a_high), (b, b_low, b_high) in pairs:
            low = max(low, a - b - widening * hypot(a - a_low, b_high - b))
            high = max(high, a - b + hypot(a_high - a, b - b_low))
    values = list(map(_get_value, compared_parts))
    n = min(part.n for part in compared_parts)
    return Number(metric, max(values) - min(values), low, high, n)


def _get_value(part: Number) -> float:
    assert part.value is not None  # as of `select_comparable`
    return part.value


def _list_ends(parts: Sequence[Number]) -> list[tuple[float, float, float]]:
    """Return each part's value, low end and high end; empty if a part has no interval."""
    part_ends = []
    for part in parts:
        if part.low is None or part.high is None:
            return []
        part_ends.append((_get_value(part), part.low, part.high))
    return part_ends


def _compute_widening(count: int) -> float:
    """Return the factor by which to widen 95 % intervals so that `count` ends hold at once."""
    normal = NormalDist()
    return normal.inv_cdf(1 - 0.025 / count) / normal.inv_cdf(0.975)
