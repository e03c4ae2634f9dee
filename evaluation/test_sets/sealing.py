"""Limit what people can learn about a sealed set: how scores are rounded, and how many are shown.

docs/evaluation.md, “Sealed sets”, explains it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, log2, sqrt

BITS_PER_EXAMPLE = 0.25
"""The number of bits per example that one person may learn.

From these bits alone, at most 79 % of two equally frequent labels can be told correctly
(1 − H(0.79) = 0.25, Shannon's rate-distortion function).
"""
SIDE_BITS = 16
"""The number of bits that a perturbed run discloses by its outcome, one of nine, and its time."""
SIGNED_METRICS = ("matthews_correlation",)
"""Metrics that range from -1 to 1. All others range from 0 to 1."""
HALF_INTERVAL_STEPS = 1.96 * sqrt(1 + 1 / 12)
"""Half of a 95% interval, in steps. A standard error is one step; rounding adds step² ÷ 12."""


def count_steps(size: int) -> int:
    """Return the number of rounding steps between 0 and 1 for a set of `size` examples.

    A step is at least 1 ÷ (2√size). This is the largest standard error of a mean of `size` numbers
    between 0 and 1.
    """
    return max(1, floor(2 * sqrt(size)))


def round_to_step(value: float, size: int) -> float:
    """Return a score rounded to the nearest step, but at most 1.

    The interval shown beside the score covers the difference. `Disclosure` counts only the steps
    from 0 to 1.
    """
    steps = count_steps(size)
    return min(1.0, round(value * steps) / steps)


def compute_interval(value: float, size: int, metric: str) -> tuple[float, float]:
    """Return the low and high end of the 95% interval around a rounded score.

    The interval depends only on the rounded score, so it discloses nothing more about the exact
    one.

    Parameters
    ----------
    value
        The rounded score.
    size
        The number of examples used for rounding.
    metric
        The metric's name. Metrics in `SIGNED_METRICS` range from -1 to 1, all others from 0 to 1.

    Notes
    -----
    value ± 1.96 · √(1 + 1/12) steps, twice that for signed metrics, limited to the metric's range.
    """
    half_width, lower_bound = HALF_INTERVAL_STEPS / count_steps(size), 0.0
    # Their range from -1 to 1 is twice as wide, and so is the standard error.
    if metric in SIGNED_METRICS:
        half_width, lower_bound = 2 * half_width, -1.0
    return max(lower_bound, value - half_width), min(1.0, value + half_width)


@dataclass(frozen=True)
class Disclosure:
    """The information that each shown result on a set discloses: one rounded score per metric.

    side_runs: the number of perturbed runs whose outcome and time may also disclose something.
    has_trial: whether a trial of leaks is shown beside the result (`LeakEstimate.round_to`).
    """

    size: int  # examples
    metrics: Sequence[str]
    side_runs: int = 0
    has_trial: bool = False

    @property
    def bits(self) -> float:
        """The number of bits that one result discloses.

        Each score discloses its step, or that it could not be computed.
        """
        steps = count_steps(self.size)
        total = float(SIDE_BITS * self.side_runs)
        for name in self.metrics:
            steps_of_metric = 2 * steps if name in SIGNED_METRICS else steps
            # One more value than steps, and one for a score that could not be computed.
            total += log2(steps_of_metric + 2)
        # The difference goes from -1 to 1, its error from 0 to 1 in quarters of steps.
        if self.has_trial:
            total += log2(2 * steps + 2) + log2(4 * steps + 2)
        return total

    @property
    def max_results(self) -> int:
        """The maximum number of results to show one person; at least one."""
        return max(1, floor(BITS_PER_EXAMPLE * self.size / (self.bits or inf)))

    @property
    def max_bits(self) -> float:
        """The maximum number of bits that a person can learn about the set, even on purpose."""
        return self.max_results * self.bits
