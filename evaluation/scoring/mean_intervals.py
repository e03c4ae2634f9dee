"""Intervals of means over examples, as a bootstrap of endless draws has them. Pure, no chance.

Each example is drawn Poisson(1) times, and the mean is a quotient: what was drawn of the values by
what was drawn of the examples. It is at most r if Σ weight × (value − r) is at most 0, and the
cumulants of that sum are the sums of the powers of value − r. So the quantiles are those of the
expansion of Cornish and Fisher (1938), to which four sums of powers are enough.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from evaluation.contract import LEAST_RESAMPLED
from evaluation.scoring.metrics.base import Sums
from validation.rules.rates import NORMAL, student, wilson

POWERS = 4
STEPS = 20
"""Corrections of an end, of which the last ones change nothing."""


def powers(values: NDArray[np.float64]) -> Sums:
    """Vectors whose sums `means_of` reads: 1, then each power of each column of values."""
    rows = values.reshape(len(values), -1).astype(float)
    return np.hstack([np.ones((len(rows), 1)), *(rows**power for power in range(1, POWERS + 1))])


@dataclass(frozen=True)
class ExactMean:
    """A mean of numbers (0 to 1, a difference −1 to 1) by the sums of their powers."""

    n: float
    sums: tuple[float, ...]

    @property
    def value(self) -> float:
        """The mean itself."""
        return self.sums[0] / self.n

    @property
    def error(self) -> float:
        """Its standard error; 0 where all numbers are alike."""
        variance = self._central(self.value)[0] / self.n
        return sqrt(variance / self.n) if variance > 1e-12 else 0.0

    def end(self, z: float) -> float:
        """The quantile of its bootstrap at the place where a normal number is z."""
        found = self.value
        for _ in range(STEPS):
            two, three, four = self._central(found)
            skew, tail = three / two**1.5, four / two**2
            shifted = (
                z
                + (z * z - 1) * skew / 6
                + (z**3 - 3 * z) * tail / 24
                - (2 * z**3 - 5 * z) * skew * skew / 36
            )
            found = self.value + sqrt(two) * shifted / self.n
        return found

    def _central(self, r: float) -> tuple[float, float, float]:
        """The sums of the second, third and fourth power of the numbers less r."""
        n, (one, two, three, four) = self.n, self.sums
        return (
            max(0.0, two - 2 * r * one + n * r**2),
            three - 3 * r * two + 3 * r**2 * one - n * r**3,
            four - 4 * r * three + 6 * r**2 * two - 4 * r**3 * one + n * r**4,
        )


def means_of(sums: NDArray[np.float64]) -> list[ExactMean]:
    """The means of each column of values of which these are sums of `powers`."""
    n, rest = float(sums[0]), sums[1:].reshape(POWERS, -1)
    return [ExactMean(n, (*column,)) for column in rest.T.tolist()]


def mean_interval(mean: ExactMean) -> tuple[float, float, float]:
    """A share with its interval of 95 %; Wilson's of few examples, or of such as are all alike.

    These look surer than they are; no mean of numbers from 0 to 1 varies more than right and wrong.
    """
    value, n = mean.value, round(mean.n)
    if n < LEAST_RESAMPLED or not mean.error:
        return (value, *wilson(value * n, n))
    low, high = mean.end(-NORMAL), mean.end(NORMAL)
    return value, max(0.0, min(value, low)), min(1.0, max(value, high))


def difference_interval(mean: ExactMean) -> tuple[float, float | None, float | None]:
    """A mean difference with Student's interval; None where n examples do not show one."""
    value, n = mean.value, round(mean.n)
    if n < LEAST_RESAMPLED or not mean.error:
        return value, None, None
    half = student(n - 1) * mean.error
    return value, max(-1.0, value - half), min(1.0, value + half)
