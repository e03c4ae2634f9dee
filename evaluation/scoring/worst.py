"""The worst of several parts of the examples, such as kinds of perturbation or groups of people.

Pure. docs/statistics.md, “Scores of models”, tells the intervals in words.
"""

from collections.abc import Sequence
from itertools import permutations
from math import hypot
from statistics import NormalDist

from evaluation.contract import LEAST_RESAMPLED, Number

WORST_KIND, WORST_KIND_DROP = "worst_kind", "worst_kind_drop"
WORST_GROUP, GROUP_GAP = "worst_group", "group_gap"


def comparable(parts: Sequence[Number]) -> list[Number]:
    """Those of enough examples; this hangs on the set alone, not on the model."""
    return [one for one in parts if one.value is not None and one.n >= LEAST_RESAMPLED]


def worst(parts: Sequence[Number]) -> Number | None:
    """The comparable part with the least value; of equal ones the first by name."""
    return min(comparable(parts), key=lambda one: (_value(one), one.kind, one.slice), default=None)


def least(metric: str, parts: Sequence[Number]) -> Number:
    """The least value of the comparable parts; n is that of the smallest of them.

    Whichever part is the worst in truth, it is not below its own low end, and so not below the
    least of these. That it is not above the least high end needs all of these to hold at once, so
    they are widened by Bonferroni's correction.
    """
    found = comparable(parts)
    if not found:
        return Number(metric, None, None, None, 0)
    low = high = None
    if ends := _ends(found):
        wide = _widened(len(found))
        low = min(low for _, low, _ in ends)
        high = min(min(1.0, value + wide * (high - value)) for value, _, high in ends)
    return Number(metric, min(map(_value, found)), low, high, min(one.n for one in found))


def gap(metric: str, parts: Sequence[Number]) -> Number:
    """The largest difference between two comparable parts; n is that of the smallest part.

    The interval of each difference is Newcombe's (1998, method 10), as if the parts shared no
    example. That the largest is not below the greatest low end needs all of these to hold at once.
    """
    found = comparable(parts)
    if len(found) < 2:
        return Number(metric, None, None, None, 0)
    values = [*map(_value, found)]
    low = high = None
    if ends := _ends(found):
        pairs = [*permutations(ends, 2)]
        wide = _widened(len(pairs))
        low = max(0.0, *(a - b - wide * hypot(a - a_low, b_high - b)
                         for (a, a_low, _), (b, _, b_high) in pairs))  # fmt: skip
        high = max(a - b + hypot(a_high - a, b - b_low) for (a, _, a_high), (b, b_low, _) in pairs)
    return Number(metric, max(values) - min(values), low, high, min(one.n for one in found))


def _value(part: Number) -> float:
    assert part.value is not None  # as of `comparable`
    return part.value


def _ends(parts: Sequence[Number]) -> list[tuple[float, float, float]]:
    """Each part's value, low and high end; nothing where one has no interval."""
    ends = [
        (_value(one), one.low, one.high)
        for one in parts
        if one.low is not None and one.high is not None
    ]
    return ends if len(ends) == len(parts) else []


def _widened(count: int) -> float:
    """By what an end of an interval of 95 % moves away so that so many ends hold at once."""
    normal = NormalDist()
    return normal.inv_cdf(1 - 0.025 / count) / normal.inv_cdf(0.975)
