"""Find the worst of several parts of the examples, such as kinds of perturbation or groups. Pure.

docs/statistics.md, “Scores of models”, explains the intervals.
"""

from collections.abc import Mapping, Sequence
from itertools import permutations
from math import hypot
from statistics import NormalDist

from evaluation.contract import MIN_RESAMPLED_EXAMPLES, Number

WORST_KIND, WORST_KIND_DROP = "worst_kind", "worst_kind_drop"
WORST_GROUP, GROUP_GAP = "worst_group", "group_gap"
CONSISTENCY = "consistency"
"""The only number of a perturbed run that is computed without right answers."""
COLUMN_BY_SUITE: Mapping[tuple[str, str], str] = {
    ("plain", WORST_GROUP): "fairness",
    ("plain", GROUP_GAP): "fairness_gap",
    ("fairness", CONSISTENCY): "fairness_consistency",
    ("robustness", WORST_KIND): "robustness",
    ("robustness", WORST_KIND_DROP): "robustness_drop",
    ("robustness", CONSISTENCY): "robustness_consistency",
}
"""The columns of a board whose names differ from the score, by suite and score."""


def select_comparable(part_numbers: Sequence[Number]) -> list[Number]:
    """Return the numbers of parts with enough examples. The choice does not depend on the model."""
    return [
        number
        for number in part_numbers
        if number.value is not None and number.n >= MIN_RESAMPLED_EXAMPLES
    ]


def find_worst(part_numbers: Sequence[Number]) -> Number | None:
    """Return the number of the comparable part with the lowest value; None without such parts.

    Ties go to the first by kind and slice.
    """

    def compute_sort_key(number: Number) -> tuple[float, str, str]:
        return _get_value(number), number.kind, number.slice

    return min(select_comparable(part_numbers), key=compute_sort_key, default=None)


def compute_least(metric: str, part_numbers: Sequence[Number]) -> Number:
    """Return the lowest value of the comparable parts, with an interval.

    n is that of the smallest part. The number has no value if no part is comparable.

    Parameters
    ----------
    metric
        The metric name of the returned number.
    part_numbers
        Numbers of one metric on several parts.

    Notes
    -----
    Whichever part is truly the worst, its value is at least its own low end, and so at least the
    lowest of all low ends. The high end is valid only if all high ends are, so they are widened by
    Bonferroni's correction.
    """
    comparable_numbers = select_comparable(part_numbers)
    if not comparable_numbers:
        return Number(metric, None, None, None, 0)
    # Without an interval if one of the parts has none.
    low = high = None
    part_ends = _list_ends(comparable_numbers)
    if part_ends:
        widening = _compute_widening(len(comparable_numbers))
        low = min(part_low for _, part_low, _ in part_ends)
        high = 1.0
        for value, _, part_high in part_ends:
            high = min(high, value + widening * (part_high - value))
    n = min(number.n for number in comparable_numbers)
    return Number(metric, min(map(_get_value, comparable_numbers)), low, high, n)


def compute_gap(metric: str, part_numbers: Sequence[Number]) -> Number:
    """Return the largest difference between two comparable parts, with an interval.

    n is that of the smallest part. The number has no value if fewer than two parts are comparable.

    Parameters
    ----------
    metric
        The metric name of the returned number.
    part_numbers
        Numbers of one metric on several parts.

    Notes
    -----
    The interval of each difference is Newcombe's (1998, method 10), as if the parts shared no
    examples. The low end is the greatest of all low ends. It is valid only if all of them are, so
    they are widened by Bonferroni's correction.
    """
    comparable_numbers = select_comparable(part_numbers)
    if len(comparable_numbers) < 2:
        return Number(metric, None, None, None, 0)
    low = high = None
    part_ends = _list_ends(comparable_numbers)
    if part_ends:
        pairs = list(permutations(part_ends, 2))
        widening = _compute_widening(len(pairs))
        # Each pair occurs in both orders, so some difference is 0 or more.
        low, high = 0.0, -1.0
        for (a, a_low, a_high), (b, b_low, b_high) in pairs:
            low = max(low, a - b - widening * hypot(a - a_low, b_high - b))
            high = max(high, a - b + hypot(a_high - a, b - b_low))
    values = list(map(_get_value, comparable_numbers))
    n = min(number.n for number in comparable_numbers)
    return Number(metric, max(values) - min(values), low, high, n)


def _get_value(number: Number) -> float:
    assert number.value is not None  # because of `select_comparable`
    return number.value


def _list_ends(part_numbers: Sequence[Number]) -> list[tuple[float, float, float]]:
    """Return each part's value, low end and high end; empty if a part has no interval."""
    part_ends = []
    for number in part_numbers:
        if number.low is None or number.high is None:
            return []
        part_ends.append((_get_value(number), number.low, number.high))
    return part_ends


def _compute_widening(count: int) -> float:
    """Return the factor by which to widen 95% intervals so that `count` ends are valid at once."""
    normal = NormalDist()
    return normal.inv_cdf(1 - 0.025 / count) / normal.inv_cdf(0.975)
