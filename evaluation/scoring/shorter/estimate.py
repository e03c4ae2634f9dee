"""Estimate a model's share of right answers on a whole set from the questions drawn. Pure.

The prediction for all questions is corrected by the residuals of the drawn ones, each divided by
its chance. Each draw gives an unbiased estimate by itself, because predictions and chances were
fixed before its answer. The weights of Farquhar et al. (2021) join them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from evaluation.scoring.shorter.drawing import MIN_QUESTIONS
from validation.rates.rates import compute_student_quantile

PSEUDO_DRAWS = 4
"""Draws with the spread of a coin that are added to the drawn ones, as Agresti and Coull (1998) do.

Without them, an interval would be far too narrow if the first answers were all right.
"""
COIN_VARIANCE = 0.25


@dataclass(frozen=True)
class AskedQuestion:
    """A drawn question with its answer; see `drawing.DrawnQuestion`.

    is_right: None if the answer was lost, for a reason that has nothing to do with it.
    """

    chance: float
    prediction: float
    rest: float
    is_right: bool | None


@dataclass(frozen=True)
class ShareEstimate:
    """The estimated share (0-1) of right answers on the whole set, with its 95% interval.

    half_width: of the interval before it is limited to possible shares.
    """

    value: float
    low: float
    high: float
    half_width: float


def estimate_share(size: int, asked: Sequence[AskedQuestion]) -> ShareEstimate | None:
    """Return the estimate for a set of `size` questions; None before two answers are known.

    asked: all drawn questions in the order in which they were drawn.

    Notes
    -----
    Draw m, from n_m = size − m + 1 remaining questions, gives

        Z_m = right answers before + Σ predictions of what remains + (answer − prediction) ÷ chance

    The estimate is Σ w_m Z_m ÷ size with w_m ∝ 1 ÷ ((n_m − 1) n_m). With equal chances and equal
    predictions it is the share of right answers, and its variance is that of a simple random
    sample without replacement (Cochran 1977, theorem 2.2).

    The residuals e_m = (answer − prediction) ÷ (chance × n_m) have about the same variance s² at
    every draw. So the variance is s² Σ w_m² n_m (n_m − 1) ÷ size². Student's t with one degree of
    freedom less than answers gives the interval.

    A lost answer counts as its prediction, and widens the interval by the most that it may change.
    """
    known_count = sum(question.is_right is not None for question in asked)
    if known_count < 2:
        return None
    right_count = sum(question.is_right is True for question in asked)
    value, deviation = combine_draws(size, asked)
    half_width = compute_student_quantile(known_count - 1) * deviation
    half_width += (len(asked) - known_count) / size
    # What the known answers leave possible, whatever the others are.
    low, high = right_count / size, (size - known_count + right_count) / size
    value = min(high, max(low, value))
    return ShareEstimate(
        value, max(low, value - half_width), min(high, value + half_width), half_width
    )


def combine_draws(size: int, asked: Sequence[AskedQuestion]) -> tuple[float, float]:
    """Return the unbiased estimate of the share, and its standard deviation; see `estimate_share`.

    The estimate may be below 0 or above 1. asked: with at least two known answers.
    """
    if len(asked) == size:
        return sum(_get_outcome(question) for question in asked) / size, 0.0
    totals, residuals, weights, variance_factors = [], [], [], []
    known_total = 0.0
    for number, question in enumerate(asked):
        remaining = size - number
        if question.is_right is not None:
            residual = (question.is_right - question.prediction) / question.chance
            totals.append(known_total + question.rest + residual)
            residuals.append(residual / remaining)
            weights.append(1 / ((remaining - 1) * remaining))
            variance_factors.append((remaining - 1) * remaining)
        known_total += _get_outcome(question)
    weight_sum = sum(weights)
    value = factor = 0.0
    for total, weight, variance_factor in zip(totals, weights, variance_factors, strict=True):
        value += weight / weight_sum * total / size
        factor += (weight / weight_sum) ** 2 * variance_factor / size**2
    deviation = sqrt(_estimate_variance(residuals) * factor)
    return value, deviation


def _get_outcome(question: AskedQuestion) -> float:
    if question.is_right is None:
        return question.prediction
    return float(question.is_right)


def _estimate_variance(residuals: Sequence[float]) -> float:
    """Return the variance of the residuals together with PSEUDO_DRAWS draws of a coin."""
    mean = sum(residuals) / len(residuals)
    squares = sum((residual - mean) ** 2 for residual in residuals)
    return (squares + PSEUDO_DRAWS * COIN_VARIANCE) / (len(residuals) - 1 + PSEUDO_DRAWS)


def find_stop_reason(
    estimate: ShareEstimate | None, asked_count: int, most_questions: int, wanted_half_width: float
) -> str:
    """Return why a short evaluation stops before its next batch; "" if it goes on.

    The answer is `width`, because the interval is narrow enough, or `questions`, because the most
    that it may ask are asked. The last question of a set makes the interval exact, which is
    `width`, too.
    """
    is_narrow = estimate is not None and estimate.half_width <= wanted_half_width
    if is_narrow and may_stop(asked_count, most_questions):
        return "width"
    return "questions" if asked_count >= most_questions else ""


def may_stop(asked_count: int, most_questions: int) -> bool:
    """Return whether enough questions were asked for an estimate: MIN_QUESTIONS, or all."""
    return asked_count >= min(MIN_QUESTIONS, most_questions)
