"""Compare a model's answers on released and held-back rows: did it learn the released ones? Pure.

Which authors' rows are released is drawn at random, so without a leak both halves are equally hard
on average. See docs/statistics.md, "Leaks".
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, fsum, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from validation.rates.rates import compute_effective_number, compute_student_quantile

Floats = NDArray[np.float64]
MIN_AUTHORS = 5
"""In each half: with fewer, their differences say too little of chance."""
MIN_EXAMPLES = 30
"""In each half."""
ALARM_CHANCE = 0.05
"""The chance to find a leak where there is none."""
POWER = 0.8
"""The chance to find a leak of `LeakEstimate.smallest_leak`."""


@dataclass(frozen=True)
class TrialHalf:
    """The rows of one half, in the same order.

    is_right: 1 for the model's right answers, else 0. expected: the share (0-1) of earlier models
    that are right, which can't have seen the rows. authors: who wrote each row.
    """

    is_right: Floats
    expected: Floats
    authors: Sequence[int]


@dataclass(frozen=True)
class LeakEstimate:
    """How much better a model is on released than on held-back rows, in shares (0-1).

    error: the standard error of the difference.
    """

    difference: float
    error: float
    degrees_of_freedom: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the difference."""
        half_width = compute_student_quantile(self.degrees_of_freedom) * self.error
        return max(-1.0, self.difference - half_width), min(1.0, self.difference + half_width)

    @property
    def largest_leak(self) -> float:
        """The one-sided 95 % bound: larger leaks can be excluded. At least 0."""
        reach = float(stdtrit(self.degrees_of_freedom, 1 - ALARM_CHANCE)) * self.error
        return min(1.0, max(0.0, self.difference + reach))

    @property
    def smallest_leak(self) -> float:
        """The leak that a trial of this size finds in 80 % of the cases.

        (t of 0.95 + t of 0.8) × the standard error (Bloom 1995).
        """
        return compute_smallest_leak(self.error, self.degrees_of_freedom)

    @property
    def p_value(self) -> float:
        """The chance of such a difference or a larger one without a leak.

        One-sided, since a leak can only help on released rows.
        """
        # A model that is always right, or always wrong, has no variance.
        if not self.error:
            return 1.0 if self.difference <= 0 else 0.0
        return float(stdtr(self.degrees_of_freedom, -self.difference / self.error))

    def round_to(self, steps: int) -> "LeakEstimate":
        """Return the estimate in steps of 1 ÷ `steps`, the error in quarters of them, rounded up.

        All other numbers follow from these two, so that they don't disclose more. Rounding adds
        its own variance, step² ÷ 12.
        """
        error = sqrt(self.error**2 + 1 / (12 * steps**2))
        return LeakEstimate(
            round(self.difference * steps) / steps,
            ceil(error * 4 * steps) / (4 * steps),
            self.degrees_of_freedom,
        )


def compute_smallest_leak(error: float, degrees_of_freedom: float) -> float:
    """Return the leak that is found with `POWER`, at a standard error of the difference."""
    quantiles = stdtrit(degrees_of_freedom, [1 - ALARM_CHANCE, POWER])
    return min(1.0, float(quantiles.sum()) * error)


def estimate_leak(released: TrialHalf, held: TrialHalf) -> LeakEstimate | None:
    """Return the difference between both halves; None with too few rows or authors in one.

    Notes
    -----
    Of each answer we subtract what the earlier models lead us to expect, times one slope for both
    halves (Lin 2013). The difference is that of the means of the remainders. Its variance is
    clustered by author, since authors were drawn and not rows (Abadie et al. 2023), with the
    correction CR2 for few clusters (Bell and McCaffrey 2002).
    """
    halves = (released, held)
    for half in halves:
        if len(half.is_right) < MIN_EXAMPLES or len(set(half.authors)) < MIN_AUTHORS:
            return None
    # One slope for both: with two, a leak could hide in the slope of the released half.
    slope = _fit_slope(halves)
    means, variances, freedoms = [], [], []
    for half in halves:
        remainders = half.is_right - slope * half.expected
        mean, variance, freedom = _compute_clustered_mean(remainders, half.authors)
        means.append(mean)
        variances.append(variance)
        freedoms.append(freedom)
    total = sum(variances)
    # Welch and Satterthwaite's degrees of freedom for two halves of different size.
    spread = fsum(
        [variance**2 / freedom for variance, freedom in zip(variances, freedoms, strict=True)]
    )
    freedom = total**2 / spread if spread else min(freedoms)
    return LeakEstimate(means[0] - means[1], sqrt(total), freedom)


def _fit_slope(halves: Sequence[TrialHalf]) -> float:
    """Return the slope of answers on what is expected, within the halves; 0 without variance."""
    products = squares = 0.0
    for half in halves:
        centred = half.expected - half.expected.mean()
        products += float(centred @ half.is_right)
        squares += float(centred @ centred)
    return products / squares if squares > 1e-9 else 0.0


def _compute_clustered_mean(values: Floats, authors: Sequence[int]) -> tuple[float, float, float]:
    """Return the mean over rows, its clustered variance, and the variance's degrees of freedom.

    A mean is a regression on a constant, for which CR2 divides each author's square by
    1 − the author's share of the rows.
    """
    mean = float(values.mean())
    sums: defaultdict[int, float] = defaultdict(float)
    counts: defaultdict[int, int] = defaultdict(int)
    for author, value in zip(authors, (values - mean).tolist(), strict=True):
        sums[author] += value
        counts[author] += 1
    n = len(values)
    squares = [sums[author] ** 2 / (1 - counts[author] / n) for author in sums]
    # Large authors decide the variance, so fewer of them count: Kish's effective number of the
    # squared sizes.
    effective_count = compute_effective_number([count**2 for count in counts.values()])
    return mean, fsum(squares) / n**2, max(1.0, effective_count - 1)


def plan_smallest_leak(
    released_n: int,
    held_n: int,
    rows_per_author: float,
    *,
    accuracy: float = 0.7,
    alikeness: float = 0.03,
    explained: float = 0.3,
) -> float:
    """Return the smallest leak (0-1) that halves of these sizes can find, before a model is run.

    Parameters
    ----------
    released_n, held_n
        Rows of each half.
    rows_per_author
        The mean number of rows of an author.
    accuracy
        The model's share of right answers.
    alikeness
        The correlation between answers to two rows of one author.
    explained
        The share of the variance that the answers of earlier models explain.
    """
    design_effect = 1 + (rows_per_author - 1) * alikeness
    row_variance = accuracy * (1 - accuracy) * (1 - explained) * design_effect
    author_count = (released_n + held_n) / rows_per_author
    error = sqrt(row_variance * (1 / released_n + 1 / held_n))
    return compute_smallest_leak(error, max(1.0, author_count - 2))
