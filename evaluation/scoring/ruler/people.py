"""Say how hard and how ambiguous an item is for people, from their votes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import beta

MIN_VOTES = 3
"""With fewer votes nothing is stated."""
PRIOR = 0.5
"""Jeffreys' prior: half a vote for each answer."""
LEVEL = 0.95
DRAWS = 4000


@dataclass(frozen=True)
class VoteEstimate:
    """A probability (0-1): its posterior mean and 95 % interval."""

    value: float
    low: float
    high: float


@lru_cache(maxsize=10_000)
def estimate_error(wrong: int, votes: int) -> VoteEstimate | None:
    """Return the probability that a person gives another answer; None with too few votes.

    Jeffreys' interval (Brown, Cai and DasGupta 2001, 3.3).
    """
    if votes < MIN_VOTES:
        return None
    shape = wrong + PRIOR, votes - wrong + PRIOR
    low, high = beta.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], *shape)
    return VoteEstimate(shape[0] / sum(shape), float(low), float(high))


def estimate_ambiguity(counts: Sequence[int], answer_count: int) -> VoteEstimate | None:
    """Return the probability that two people disagree; None with too few votes.

    Parameters
    ----------
    counts
        The number of votes for each answer that got any.
    answer_count
        How many answers can be given, at least 2.

    Notes
    -----
    It is 1 − Σ p² (Simpson 1949), where p has a Dirichlet distribution, given the votes.
    """
    if sum(counts) < MIN_VOTES:
        return None
    # Items share few patterns of votes, whatever answers they are for, so each is computed once.
    padded_counts = (*sorted(counts, reverse=True), *[0] * (answer_count - len(counts)))
    return _estimate_disagreement(padded_counts)


@lru_cache(maxsize=10_000)
def _estimate_disagreement(counts: tuple[int, ...]) -> VoteEstimate:
    shape = np.array(counts) + PRIOR
    total = float(shape.sum())
    # The mean of p² is exact; only the ends of the interval are drawn.
    mean = 1 - float((shape * (shape + 1)).sum()) / (total * (total + 1))
    draws = 1 - (np.random.default_rng(0).dirichlet(shape, DRAWS) ** 2).sum(axis=1)
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return VoteEstimate(mean, float(low), float(high))
