"""Ranks with ties, tests of two models on the same examples, and corrections for multiple tests.

docs/statistics.md explains the tests and their sources in words.

All rankings share one rule: a rank is one more than the number of models that are certainly better,
so equal models share the better rank (1, 2, 2, 4). `compute_shared_ranks` applies it to numbers,
`compute_rank_bounds` to numbers that lie between two ends, and boards to differences that are
tested (`leaderboard.board.ranked`). `label_ranks` marks ranks that several models share.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, inf, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from evaluation.scoring.paired import compute_mcnemar_p
from validation.rates.rates import MIN_CLUSTERS, Ratio, compute_clustered_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA = 0.05
STANDARD_NORMAL = NormalDist()
# 1.96: the standard errors on each side of a two-sided test at ALPHA.
CRITICAL_Z = STANDARD_NORMAL.inv_cdf(1 - ALPHA / 2)


def compute_shared_ranks(scores: Sequence[float]) -> list[int]:
    """Return the rank of each score, the highest first; equal scores share the better rank.

    >>> compute_shared_ranks([70.0, 90.0, 70.0, 50.0])
    [2, 1, 2, 4]
    """
    return [first for first, _ in compute_rank_bounds(scores, scores)]


def compute_rank_bounds(lowest: Sequence[float], highest: Sequence[float]) -> list[tuple[int, int]]:
    """Return the best and the worst possible rank of scores known only as ranges.

    A score is certainly better than another if its lower end is above the other's upper end.

    >>> compute_rank_bounds([80.0, 60.0, 50.0], [80.0, 70.0, 65.0])
    [(1, 1), (2, 3), (2, 3)]
    """
    lower_ends, upper_ends = sorted(lowest), sorted(highest)
    bounds = []
    for low, high in zip(lowest, highest, strict=True):
        better = len(lower_ends) - bisect_right(lower_ends, high)
        worse = bisect_left(upper_ends, low)
        bounds.append((1 + better, len(lower_ends) - worse))
    return bounds


def label_ranks(ranks: Collection[int]) -> list[str]:
    """Return formatted ranks; `=` marks a shared one.

    >>> label_ranks([1, 2, 2, 4])
    ['1', '2=', '2=', '4']
    """
    times = Counter(ranks)
    return [f"{rank}=" if times[rank] > 1 else str(rank) for rank in ranks]


@dataclass(frozen=True)
class Difference:
    """The mean of the first model − that of the second, with a 95% interval and two-sided p-value.

    clusters: the number of independent groups among the n examples.
    """

    value: float
    low: float
    high: float
    p: float
    n: int
    clusters: int
    method: str


def compare_scores(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
) -> Difference:
    """Compare two models on the same examples.

    Parameters
    ----------
    first, second : sequence of float
        The scores of both models, each from 0 to 1.
    clusters : sequence of hashable, optional
        The cluster of each example, such as its author or context. Examples of one cluster may
        depend on each other.

    Returns
    -------
    Difference
        The mean difference with its interval and p-value.

    Raises
    ------
    ValueError
        Without examples, or if the models have different numbers of them.

    Notes
    -----
    For binary scores on independent examples: McNemar's exact test, and the interval of Bonett and
    Price (2012). Otherwise Student's interval and test, by the differences of whole clusters. With
    fewer than MIN_CLUSTERS the test is exact, over all sign flips of these differences.
    """
    import numpy as np

    if len(first) != len(second) or not len(first):
        raise ValueError("Models are compared on the same examples, at least one.")
    # Models × examples.
    both = np.array([first, second], dtype=float)
    gains = both[0] - both[1]
    if clusters is None and ((both == 0) | (both == 1)).all():
        return _test_mcnemar(int((gains > 0).sum()), int((gains < 0).sum()), len(gains))
    if clusters is None:  # each example is independent
        clusters = range(len(gains))
    return _compare_clusters(gains, clusters)


def _compare_clusters(gains: "NDArray[Any]", clusters: Sequence[Hashable]) -> Difference:
    """Compare two models by the differences of whole clusters. gains: one per example."""
    import numpy as np
    from scipy.special import stdtr

    # Clusters are numbered in the order of their appearance.
    numbers: dict[Hashable, int] = {}
    places = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
    sums, sizes = np.bincount(places, gains), np.bincount(places)
    value, count = float(gains.mean()), len(sizes)
    pairs = list(zip(sums.tolist(), sizes.tolist(), strict=True))
    ratio = compute_clustered_ratio(pairs) if count > 1 else Ratio(value, inf, 1)
    if count < MIN_CLUSTERS:
        # 2 to the number of clusters, which MIN_CLUSTERS keeps small.
        flips = np.array(list(product((1, -1), repeat=count)))
        flipped = np.abs(flips @ sums)
        # With a tolerance, because equal sums may differ in their last digit.
        p, method = float((flipped >= abs(sums.sum()) - 1e-9).mean()), "sign-flips"
    else:
        t = 0.0
        if ratio.standard_error:
            t = value / ratio.standard_error
        elif value:
            t = inf  # the difference is the same in all clusters
        # No flip of signs is rarer than this, even if the error looks smaller.
        p, method = (
            max(2 * float(stdtr(ratio.degrees_of_freedom, -abs(t))), 2.0 ** (1 - count)),
            "student",
        )
    # If all clusters are equal, use the width for as many examples without a difference.
    half_width = ratio.half_width or _compute_half_width(0, 0, count)
    low, high = max(-1.0, value - half_width), min(1.0, value + half_width)
    return Difference(value, low, high, p, len(gains), count, method)


# Many slices have the same counts, and the exact test sums many terms.
@lru_cache(100_000)
def _test_mcnemar(wins: int, losses: int, n: int) -> Difference:
    """Compare two models with binary scores.

    wins: the number of examples that only the first answers correctly. losses: the number that only
    the second answers correctly.
    """
    value, middle = (wins - losses) / n, (wins - losses) / (n + 2)
    half_width = _compute_half_width(wins, losses, n)
    low, high = max(-1.0, middle - half_width), min(1.0, middle + half_width)
    p = compute_mcnemar_p(wins, losses)
    # The interval is centred on the shrunk value; widened so that it contains the shown one.
    return Difference(value, min(value, low), max(value, high), p, n, n, "mcnemar")


def _compute_half_width(wins: int, losses: int, n: int) -> float:
    """Return half the width of Bonett and Price's interval of (wins − losses) ÷ n, 95%."""
    won, lost = (wins + 1) / (n + 2), (losses + 1) / (n + 2)
    return CRITICAL_Z * sqrt((won + lost - (won - lost) ** 2) / (n + 2))


def compute_min_examples(half_width: float = 0.05) -> int:
    """Return the number of examples for a 95% interval of ± half_width (0-1) of an accuracy.

    n = (z ÷ (2 × half_width))², rounded up. The interval is widest at an accuracy of 0.5, where its
    half-width is z × √(0.25 ÷ n).

    >>> compute_min_examples(), compute_min_examples(0.1)
    (385, 97)
    """
    return ceil((CRITICAL_Z / (2 * half_width)) ** 2)


def compute_min_detectable(
    n: int, base_rate: float, discordance: float | None = None, power: float = 0.8
) -> float | None:
    """Return the smallest difference of two accuracies (0-1) that a test is likely to detect.

    Parameters
    ----------
    n : int
        The number of examples. Clustered ones count as their effective number.
    base_rate : float
        The accuracy of both models.
    discordance : float, optional
        The share of examples that only one of the two answers correctly, by default
        2 × base rate × (1 − base rate), as if they erred independently.
    power : float
        The probability of detecting the difference, at α = 0.05.

    Returns
    -------
    float or None
        None if no difference can be detected.

    Notes
    -----
    Connor (1987), solved for the difference.
    """
    split = 2 * base_rate * (1 - base_rate) if discordance is None else discordance
    z = STANDARD_NORMAL.inv_cdf(power)
    # Below it the sample is too small for any difference.
    room = n + z**2 - CRITICAL_Z**2
    if room < 0:
        return None
    lowest = sqrt(split) * (CRITICAL_Z * sqrt(n) + z * sqrt(room)) / (n + z**2)
    return lowest if 0 < lowest <= split else None
