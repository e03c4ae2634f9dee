"""Counts of examples by which of two models are right: both, one of them, or neither."""

from collections.abc import Sequence
from typing import NamedTuple

CORRECT_GRADE = 1.0
OUTCOME_PARTS = ("both", "first", "second", "neither")
"""The names of the parts in addresses, in the order of the bar."""


class OutcomeCounts(NamedTuple):
    """The numbers of a set's examples that both, one or neither of two models answers correctly."""

    both: int
    first: int
    second: int
    neither: int


def count_outcomes(first: Sequence[float], second: Sequence[float]) -> OutcomeCounts | None:
    """Count the examples by who is right; None if some answers are right in part.

    >>> count_outcomes([1, 1, 0, 0], [1, 0, 1, 0])
    OutcomeCounts(both=1, first=1, second=1, neither=1)
    >>> count_outcomes([1, 0.5], [1, 1]) is None
    True
    """
    counts = dict.fromkeys(OUTCOME_PARTS, 0)
    for grades in zip(first, second, strict=True):
        # A partly correct answer is in none of the four parts.
        if not set(grades) <= {0.0, CORRECT_GRADE}:
            return None
        counts[name_outcome(*grades)] += 1
    return OutcomeCounts(**counts)


def name_outcome(first: float, second: float) -> str:
    """Return which of OUTCOME_PARTS an example belongs to, given both models' grades."""
    if first == second:
        return "both" if first == CORRECT_GRADE else "neither"
    return "first" if first > second else "second"
