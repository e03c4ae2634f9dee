"""How much anybody may learn about a sealed set: rounding, how often, and the bits that makes.

docs/evaluation.md, “Sealed sets”, tells it in words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, log2, sqrt

BITS_PER_EXAMPLE = 0.25
"""What one person may learn: with it alone at most 79 % of two equally frequent labels are told
right (1 − H(0.79) = 0.25, Shannon's rate-distortion function)."""
SIDE_BITS = 16
"""How and when a perturbed run ended: one of nine outcomes, and its hour to a tenth of a second."""
SIGNED = ("matthews_correlation",)
"""Metrics from -1 to 1; all others are from 0 to 1."""
HALF_STEPS = 1.96 * sqrt(1 + 1 / 12)
"""Half an interval of 95 %: a step is a standard error, and rounding adds its variance / 12."""


def steps_in_one(size: int) -> int:
    """Into how many steps the way from 0 to 1 is cut on a set of so many examples.

    A step is the greatest standard error of a mean of as many numbers between 0 and 1, 1 ÷ (2√n),
    or a little more.
    """
    return max(1, floor(2 * sqrt(size)))


def rounded(value: float, size: int) -> float:
    """A score to the nearest step. An interval is shown, so nothing is lost that was known."""
    steps = steps_in_one(size)
    return round(value * steps) / steps


def interval(value: float, size: int, metric: str) -> tuple[float, float]:
    """The interval of a rounded score: it depends on nothing else, and so tells nothing more."""
    half, least = HALF_STEPS / steps_in_one(size), -1.0 if metric in SIGNED else 0.0
    if metric in SIGNED:
        half *= 2
    return max(least, value - half), min(1.0, value + half)


@dataclass(frozen=True)
class Shown:
    """What is shown of each result on a set: its scores. side: other runs that may tell of it."""

    size: int  # examples
    metrics: Sequence[str]
    side_runs: int = 0

    @property
    def bits(self) -> float:
        """What one result can tell: which step each score is on, or that there is none."""
        steps = steps_in_one(self.size)
        values = (steps * (2 if name in SIGNED else 1) + 2 for name in self.metrics)
        return sum(map(log2, values)) + SIDE_BITS * self.side_runs

    @property
    def results(self) -> int:
        """How many results a person is shown; one at least."""
        return max(1, floor(BITS_PER_EXAMPLE * self.size / (self.bits or inf)))

    @property
    def most_bits(self) -> float:
        """The bound: what a person can learn about the set, whatever they submit."""
        return self.results * self.bits
