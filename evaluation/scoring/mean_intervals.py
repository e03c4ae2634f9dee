"""Compute intervals of means, as bootstraps with ever more resamples approach. Pure: draws nothing.

Each example is drawn Poisson(1) times. The mean is a quotient: the sum of the drawn values divided
by the number of drawn examples. It is at most r if Σ weight × (value − r) is at most 0. The
cumulants of that sum are the sums of the powers of value − r. So the quantiles follow from the
expansion of Cornish and Fisher (1938), for which four sums of powers are enough.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from evaluation.contract import MIN_RESAMPLED_EXAMPLES
from evaluation.scoring.metrics.base import Sums
from validation.rates.rates import (
    NORMAL_QUANTILE,
    compute_student_quantile,
    compute_wilson_interval,
)

POWER_COUNT = 4
STEP_COUNT = 20
"""The number of iterations that find an end of an interval, more than enough to converge."""


def compute_powers(values: NDArray[np.float64]) -> Sums:
    """Return vectors for `compute_means`: 1, then the powers of each column of values."""
    rows = values.reshape(len(values), -1).astype(float)
    columns = [np.ones((len(rows), 1))]
    columns += [rows**power for power in range(1, POWER_COUNT + 1)]
    return np.hstack(columns)


@dataclass(frozen=True)
class ExactMean:
    """A mean of numbers (0 to 1; differences −1 to 1), represented by the sums of their powers."""

    n: float
    sums: tuple[float, ...]

    @property
    def value(self) -> float:
        """The mean itself."""
        return self.sums[0] / self.n

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 if all numbers are equal."""
        variance = self._sum_central_powers(self.value)[0] / self.n
        if variance <= 1e-12:  # equal numbers, whose sums of floats differ in the last digits
            return 0.0
        return sqrt(variance / self.n)

    def compute_quantile(self, z: float) -> float:
        """Return the bootstrap quantile of the mean that corresponds to the normal quantile z.

        Notes
        -----
        Uses Cornish and Fisher's expansion with skewness and kurtosis. Both depend on the quantile
        itself, so it is found by iteration, starting from the mean.
        """
        quantile = self.value
        for _ in range(STEP_COUNT):
            second_power, third_power, fourth_power = self._sum_central_powers(quantile)
            skewness, kurtosis = third_power / second_power**1.5, fourth_power / second_power**2
            # The normal quantile, corrected for skewness, for tails, and for the square of
            # skewness.
            corrected_z = (
                z
                + (z * z - 1) * skewness / 6
                + (z**3 - 3 * z) * kurtosis / 24
                - (2 * z**3 - 5 * z) * skewness * skewness / 36
            )
            quantile = self.value + sqrt(second_power) * corrected_z / self.n
        return quantile

    def _sum_central_powers(self, r: float) -> tuple[float, float, float]:
        """Return the sums of the second, third and fourth powers of the numbers minus r."""
        # Binomial expansions of Σ (x − r)^k. Rounding may make the square slightly negative.
        n, (first, second, third, fourth) = self.n, self.sums
        return (
            max(0.0, second - 2 * r * first + n * r**2),
            third - 3 * r * second + 3 * r**2 * first - n * r**3,
            fourth - 4 * r * third + 6 * r**2 * second - 4 * r**3 * first + n * r**4,
        )


def compute_means(sums: NDArray[np.float64]) -> list[ExactMean]:
    """Return the mean of each column of values, from the sums of their `compute_powers`."""
    # In the order of `compute_powers`: 1, then all columns for each power.
    n, power_sums = float(sums[0]), sums[1:].reshape(POWER_COUNT, -1)
    return [ExactMean(n, tuple(column)) for column in power_sums.T.tolist()]


def compute_mean_interval(mean: ExactMean) -> tuple[float, float, float]:
    """Return a mean (0-1) with its 95% interval: value, low end, high end.

    For few examples or equal numbers this is Wilson's interval, because the exact one would be too
    narrow. Wilson's is wide enough, because numbers from 0 to 1 vary most if all are 0 or 1.
    """
    value, n = mean.value, round(mean.n)
    # Few examples, or equal ones, have no skewness to correct for.
    if n < MIN_RESAMPLED_EXAMPLES or not mean.error:
        return (value, *compute_wilson_interval(value * n, n))
    low, high = mean.compute_quantile(-NORMAL_QUANTILE), mean.compute_quantile(NORMAL_QUANTILE)
    return value, max(0.0, min(value, low)), min(1.0, max(value, high))


def compute_difference_interval(mean: ExactMean) -> tuple[float, float | None, float | None]:
    """Return a mean difference with Student's interval: value, low end, high end.

    Both ends are None for few examples and for equal differences.
    """
    value, n = mean.value, round(mean.n)
    if n < MIN_RESAMPLED_EXAMPLES or not mean.error:
        return value, None, None
    half_width = compute_student_quantile(n - 1) * mean.error
    return value, max(-1.0, value - half_width), min(1.0, value + half_width)
