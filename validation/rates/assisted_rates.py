"""Estimate a share from few votes and a judge model that answered everything. Pure.

The judge may be wrong in any way. People's votes on a random sample correct it: a straight line
from the judge's answers to people's, plus what the line misses in the sample, weighted by one over
the chance of being drawn. This is the generalised regression estimator (Särndal, Swensson and
Wretman 1992, 6.4), also known as prediction-powered inference (Angelopoulos et al. 2023).
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import ceil, fsum, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from validation.rates.rates import (
    NORMAL_QUANTILE,
    compute_effective_number,
    compute_student_quantile,
)

MIN_VOTED_EXAMPLES = 10
MIN_AUTHORS = 3


@dataclass(frozen=True)
class AssistedExample:
    """One example: what the judge model says of it, and what people say if they were asked."""

    author: Hashable
    """Examples of one author resemble each other."""
    judge_score: float
    """What the judge says, such as 1 for a catch and 0 for none, or a chance."""
    people_score: float | None
    """What people say (0-1). None if the example wasn't drawn."""
    draw_chance: float
    """The chance with which the example was drawn for people, above 0. Decided before the draw."""


@dataclass(frozen=True)
class AssistedRate:
    """A share with its 95% interval, by people's votes with the help of a judge model."""

    value: float
    low: float
    high: float
    standard_error: float
    voted_count: int
    """The number of examples that people judged."""


def compute_assisted_rate(examples: Sequence[AssistedExample]) -> AssistedRate | None:
    """Return the share that people would find if they judged everything.

    None if people judged fewer than `MIN_VOTED_EXAMPLES`, or examples of fewer than `MIN_AUTHORS`.

    Raises
    ------
    ValueError
        If a chance of being drawn isn't above 0 and at most 1.

    Notes
    -----
    The interval is Student's by whole authors. Its degrees of freedom are Satterthwaite's (1946)
    for totals that grow with the number of an author's judged examples: one less than
    (Σ n²)² ÷ Σ n⁴. The number of authors promises too much where one wrote a tenth of everything.
    """
    people_scores = [example.people_score for example in examples]
    estimate = _estimate_mean(examples, people_scores, [False] * len(examples))
    if estimate is None:
        return None
    half_width = estimate.student_quantile * estimate.standard_error
    return AssistedRate(
        value=min(1.0, max(0.0, estimate.value)),
        low=max(0.0, estimate.value - half_width),
        high=min(1.0, estimate.value + half_width),
        standard_error=estimate.standard_error,
        voted_count=estimate.voted_count,
    )


class RatioTerm(NamedTuple):
    """What people found of one example, for a ratio of two sums.

    numerator, size: None if people weren't asked. is_known: they follow without any vote, so they
    are exact and tell nothing of the judge.
    """

    numerator: float | None
    size: float | None
    is_known: bool = False


def compute_assisted_ratio(
    examples: Sequence[AssistedExample], terms: Sequence[RatioTerm], lowest: float = 0.0
) -> AssistedRate | None:
    """Return the ratio of two sums that people would find if they judged everything.

    Parameters
    ----------
    examples
        All examples. Their `people_score` isn't read.
    terms
        One for each example, in the same order.
    lowest
        The least possible value: 0 of a share, -1 of a difference of shares. The greatest is 1.

    Returns
    -------
    AssistedRate or None
        None with too few judged examples or authors, as of `compute_assisted_rate`, and if no
        judged example counts in the denominator.

    Raises
    ------
    ValueError
        As `compute_assisted_rate`.

    Notes
    -----
    The ratio R of the sums weighted by one over the chance, plus the estimated mean of
    (numerator - R * size) / mean size over all examples (Särndal, Swensson and Wretman 1992, 5.6).
    """
    weights = [
        0.0 if term.size is None else 1.0 if term.is_known else 1 / example.draw_chance
        for example, term in zip(examples, terms, strict=True)
    ]
    size_sum = _sum_weighted([term.size for term in terms], weights)
    if size_sum == 0:
        return None
    ratio = _sum_weighted([term.numerator for term in terms], weights) / size_sum
    # Linearised: the ratio's error is about the mean error of these differences.
    mean_size = size_sum / len(examples)
    differences: list[float | None] = []
    for term in terms:
        if term.numerator is None or term.size is None:
            differences.append(None)
        else:
            differences.append((term.numerator - ratio * term.size) / mean_size)
    estimate = _estimate_mean(examples, differences, [term.is_known for term in terms])
    if estimate is None:
        return None
    value = ratio + estimate.value
    half_width = estimate.student_quantile * estimate.standard_error
    return AssistedRate(
        value=min(1.0, max(lowest, value)),
        low=max(lowest, value - half_width),
        high=min(1.0, value + half_width),
        standard_error=estimate.standard_error,
        voted_count=estimate.voted_count,
    )


def _sum_weighted(values: Sequence[float | None], weights: Sequence[float]) -> float:
    return fsum((value or 0.0) * weight for value, weight in zip(values, weights, strict=True))


class _Mean(NamedTuple):
    value: float
    standard_error: float
    student_quantile: float
    voted_count: int


def _estimate_mean(
    examples: Sequence[AssistedExample],
    people_values: Sequence[float | None],
    are_known: Sequence[bool],
) -> _Mean | None:
    """Return the mean of what people would find; None with too few judged examples or authors.

    people_values: None where people weren't asked. are_known: see `RatioTerm`.
    """
    chances = np.array([example.draw_chance for example in examples])
    if not np.all((chances > 0) & (chances <= 1)):
        raise ValueError("A chance of being drawn must be above 0 and at most 1.")
    is_known = np.array(are_known, dtype=bool)
    is_voted = np.array([value is not None for value in people_values], dtype=bool) & ~is_known
    voted_by_author = Counter(
        example.author for example, voted in zip(examples, is_voted, strict=True) if voted
    )
    voted_count = int(is_voted.sum())
    if voted_count < MIN_VOTED_EXAMPLES or len(voted_by_author) < MIN_AUTHORS:
        return None
    judge_scores = np.array([example.judge_score for example in examples])
    people_scores = np.array([value or 0.0 for value in people_values])

    expected_scores = _fit_line(judge_scores, people_scores, is_voted / chances)
    # Of these the judge isn't needed.
    expected_scores = np.where(is_known, people_scores, expected_scores)
    # The line has two parameters, so the misses are too small by this factor.
    inflation = sqrt(voted_count / (voted_count - 2))
    misses = is_voted / chances * (people_scores - expected_scores)
    count = len(examples)
    value = float((expected_scores + misses).mean())
    influences = expected_scores - value + inflation * misses
    standard_error = _compute_clustered_error([example.author for example in examples], influences)
    # The variance is a sum of squares over authors, which grow with the square of their examples.
    # If a few authors wrote most of them, these few decide how well it is known.
    effective_squares = compute_effective_number([n**2 for n in voted_by_author.values()])
    quantile = compute_student_quantile(max(1.0, effective_squares - 1))
    return _Mean(value, standard_error / count, quantile, voted_count)


def _fit_line(
    judge_scores: NDArray[np.float64],
    people_scores: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return for each example what people say on average, given what the judge says."""
    judge_mean = np.average(judge_scores, weights=weights)
    people_mean = np.average(people_scores, weights=weights)
    offsets = judge_scores - judge_mean
    variance = np.sum(weights * offsets**2)
    # A judge who says the same of everything in the sample helps nothing, and costs nothing.
    slope = np.sum(weights * offsets * (people_scores - people_mean)) / variance if variance else 0
    return np.asarray(people_mean + slope * offsets)


def _compute_clustered_error(authors: Sequence[Hashable], influences: NDArray[np.float64]) -> float:
    """Return the standard error of the sum of influences, by whole authors (Cochran 1977, 9A)."""
    total_by_author: dict[Hashable, float] = {}
    for author, influence in zip(authors, influences.tolist(), strict=True):
        total_by_author[author] = total_by_author.get(author, 0.0) + influence
    totals = np.array(list(total_by_author.values()))
    author_count = len(totals)
    return sqrt(author_count / (author_count - 1) * float(np.sum(totals**2)))


def compute_judge_correlation(rows: Sequence[tuple[float, float, float]]) -> float:
    """Return the weighted correlation (-1 to 1) of a judge's answers with people's.

    rows: (what the judge says, what people say, weight). 0 if either says the same of everything.
    """
    judge_scores, people_scores, weights = np.array(rows).T
    judge_offsets = judge_scores - np.average(judge_scores, weights=weights)
    people_offsets = people_scores - np.average(people_scores, weights=weights)
    spread = float(np.sum(weights * judge_offsets**2) * np.sum(weights * people_offsets**2))
    if spread == 0:
        return 0.0
    return float(np.sum(weights * judge_offsets * people_offsets)) / sqrt(spread)


def compute_judge_kappa(rows: Sequence[tuple[float, float, float]]) -> float | None:
    """Return the weighted kappa (Cohen 1960) of a judge's verdicts with people's.

    rows: as `compute_judge_correlation` takes them. A judge that says more than one half finds the
    author right. None if both always say the same, so that chance alone agrees.
    """
    judge_scores, people_scores, weights = np.array(rows).T
    judge_verdicts, people_verdicts = judge_scores > 0.5, people_scores > 0.5
    agreement = np.average(judge_verdicts == people_verdicts, weights=weights)
    judge_share = np.average(judge_verdicts, weights=weights)
    people_share = np.average(people_verdicts, weights=weights)
    by_chance = judge_share * people_share + (1 - judge_share) * (1 - people_share)
    # Both always say the same, so nothing is left that chance doesn't explain.
    if by_chance == 1:
        return None
    return float((agreement - by_chance) / (1 - by_chance))


@dataclass(frozen=True)
class VotePlan:
    """How many examples people must judge for a wanted interval."""

    with_judge: int | None
    """None if the interval would be too wide even if people judged everything."""
    without_judge: int | None
    saved_share: float
    """The share (0-1) of judgements that the judge model saves."""


def plan_votes(
    example_count: int,
    width: float,
    *,
    expected_share: float,
    correlation: float,
    design_effect: float = 1.0,
) -> VotePlan:
    """Return how many examples people must judge, with and without a judge model.

    Parameters
    ----------
    example_count
        The number of examples, all of which the judge model answers.
    width
        The wanted width of the 95% interval, from end to end.
    expected_share
        The share (0-1) that is expected. The nearer to 0.5, the more votes are needed.
    correlation
        Of the judge's answers with people's, from −1 to 1. For verdicts about as large as κ.
    design_effect
        The variance between authors' examples ÷ that of independent ones.

    Raises
    ------
    ValueError
        If `width` isn't positive.

    Notes
    -----
    The variance is σ² (ρ² ÷ N + (1 − ρ²) ÷ n). So for equal width the judge saves ρ² (1 − n ÷ N).
    """
    if width <= 0:
        raise ValueError("The width must be positive.")
    wanted_variance = (width / 2 / NORMAL_QUANTILE) ** 2
    spread = expected_share * (1 - expected_share) * design_effect
    counts: list[int | None] = []
    for explained in (correlation**2, 0.0):
        # What even all examples leave: they are themselves a sample of what people could write.
        left = wanted_variance - spread * explained / example_count
        needed = ceil(spread * (1 - explained) / left) if left > 0 else example_count + 1
        needed = max(needed, MIN_VOTED_EXAMPLES)
        counts.append(needed if needed <= example_count else None)
    with_judge, without_judge = counts
    saved_share = 0.0
    if with_judge is not None and without_judge is not None:
        saved_share = 1 - with_judge / without_judge
    return VotePlan(with_judge, without_judge, saved_share)
