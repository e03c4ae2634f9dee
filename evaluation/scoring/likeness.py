"""Decide whether two models answer so alike that one may be a copy of the other.

Two honest models agree where both are right, and by chance where both are wrong. Copies share
their errors, too. Three conditions together make a near-copy:

- At least as many identical wrong answers as different answers: the ratio of D. N. Harpp and J. J.
  Hogan ("Crime in the classroom", Journal of Chemical Education 70, 1993) is 1 or more.
- At least three quarters of the examples that both get wrong, and at least six, have the same
  answer.
- Significantly more equal answers than expected of two independent models. The expectation is that
  of J. A. Wollack's ω (Applied Psychological Measurement 21, 1997): each model draws its answer by
  its own rates. These are counted separately for each right answer. So accuracy and a preference
  for some labels are allowed for.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

MIN_EQUAL_WRONG = 6
MIN_SAME_SHARE = 0.75
MIN_STANDARD_ERRORS = 3.72
"""The minimum number of standard errors above the expectation; 1 pair in 10,000 by chance."""
Codes = NDArray[np.int64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Answers:
    """A model's answers to a set, one entry per example, in the order of the set.

    codes: integers from 0, equal for equal answers of any model. right: whether each answer is
    fully right.
    """

    codes: Codes
    right: Marks


@dataclass(frozen=True)
class Likeness:
    """Counts of examples on which two models agree. expected: equal answers expected by chance."""

    n: int
    equal: int
    expected: float
    error: float  # the standard error of `expected`
    both_wrong: int
    equal_wrong: int

    @property
    def is_near_copy(self) -> bool:
        """Whether one model may be a copy of the other."""
        return (
            self.equal_wrong >= max(MIN_EQUAL_WRONG, self.n - self.equal)
            and self.equal_wrong >= MIN_SAME_SHARE * self.both_wrong
            and self.equal > self.expected + MIN_STANDARD_ERRORS * self.error
        )


def measure_likeness(gold: Codes, first: Answers, second: Answers) -> Likeness:
    """Compare the answers of two models on one set.

    Parameters
    ----------
    gold
        The code of each example's right answer, integers from 0.
    first, second
        The answers of both models, in the same order.

    Notes
    -----
    Among n examples with the same right answer, both models give the same answer by chance n · Σ
    pᵢqᵢ times, where p and q are the rates at which they give answer i. The variance is that of n
    coin flips with this probability.
    """
    is_equal = first.codes == second.codes
    both_wrong = ~first.right & ~second.right
    expected_agreement = variance = 0.0
    code_count = 1 + max(first.codes.max(initial=0), second.codes.max(initial=0))
    for right_answer in np.unique(gold):
        has_answer = gold == right_answer
        n = int(has_answer.sum())
        first_rates = np.bincount(first.codes[has_answer], minlength=code_count) / n
        second_rates = np.bincount(second.codes[has_answer], minlength=code_count) / n
        # As if each model drew its answers with its own probabilities.
        rng = float(np.dot(first_rates, second_rates))
        expected_agreement += n * rng
        variance += n * rng * (1 - rng)
    return Likeness(
        n=len(gold),
        equal=int(is_equal.sum()),
        expected=expected_agreement,
        # Rounding may give a tiny negative number.
        error=sqrt(max(0.0, variance)),
        both_wrong=int(both_wrong.sum()),
        equal_wrong=int((both_wrong & is_equal).sum()),
    )
