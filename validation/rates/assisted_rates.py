"""Estimate a share from few votes and a judge model that answered everything. Pure.

The judge may be wrong in any way. People's votes on a random sample correct it: a straight line
from the judge's answers to people's, plus what the line misses in the sample, weighted by one over
the chance of being drawn. This is the generalised regression estimator (Särndal, Swensson and
Wretman 1992, 6.4), also known as prediction-powered inference (Angelopoulos et al. 2023).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from validation.rates.rates import NORMAL_QUANTILE, compute_student_quantile

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
    The interval is Student's by whole authors, with one degree of freedom less than there are
    authors among the judged examples.
    """
    chances = np.array([example.draw_chance for example in examples])
    if not np.all((chances > 0) & (chances <= 1)):
        raise ValueError("A chance of being drawn must be above 0 and at most 1.")
    is_voted = np.array([example.people_score is not None for example in examples], dtype=bool)
    voted_authors = {example.author for example in examples if example.people_score is not None}
    voted_count = int(is_voted.sum())
    if voted_count < MIN_VOTED_EXAMPLES or len(voted_authors) < MIN_AUTHORS:
        return None
    judge_scores = np.array([example.judge_score for example in examples])
    people_scores = np.array([example.people_score or 0.0 for example in examples])

    expected_scores = _fit_line(judge_scores, people_scores, is_voted / chances)
    # The line has two parameters, so the misses are too small by this factor.
    inflation = sqrt(voted_count / (voted_count - 2))
    misses = is_voted / chances * (people_scores - expected_scores)
    count = len(examples)
    value = float((expected_scores + misses).mean())
    influences = expected_scores - value + inflation * misses
    standard_error = _compute_clustered_error([example.author for example in examples], influences)
    half_width = compute_student_quantile(len(voted_authors) - 1) * standard_error / count
    return AssistedRate(
        value=min(1.0, max(0.0, value)),
        low=max(0.0, value - half_width),
        high=min(1.0, value + half_width),
        standard_error=standard_error / count,
        voted_count=voted_count,
    )


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
