"""Adjust the p-values of tests that are read together. Pure."""

from collections.abc import Sequence


def adjust_by_holm(ps: Sequence[float]) -> list[float]:
    """Adjust the p-values of tests that are read together, by Holm's method (1979).

    With a threshold α, at most a share α of all boards contains a false positive. Keeps the order.
    """
    adjusted_ps, lower_bound = [0.0] * len(ps), 0.0
    for rank, number in enumerate(_order_by_p(ps)):
        # From the smallest p upwards; an adjusted p is never below an earlier one.
        lower_bound = max(lower_bound, min(1.0, (len(ps) - rank) * ps[number]))
        adjusted_ps[number] = lower_bound
    return adjusted_ps


def adjust_by_benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Adjust the p-values of many slices, by Benjamini and Hochberg (1995).

    Of those below α, at most a share α is expected to be false. Keeps the order.
    """
    adjusted_ps, upper_bound = [0.0] * len(ps), 1.0
    order = _order_by_p(ps)
    for rank in range(len(ps), 0, -1):
        # From the greatest p downwards; an adjusted p is never above a later one.
        number = order[rank - 1]
        upper_bound = min(upper_bound, len(ps) / rank * ps[number])
        adjusted_ps[number] = upper_bound
    return adjusted_ps


def _order_by_p(ps: Sequence[float]) -> list[int]:
    """Return the indices of the p-values, the smallest first."""
    return sorted(range(len(ps)), key=ps.__getitem__)
