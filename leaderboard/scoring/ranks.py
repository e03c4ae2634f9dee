"""Which of two models is better on the same examples, with the corrections for many tests.

docs/statistics.md tells the tests and their sources in words.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil, inf, sqrt
from statistics import NormalDist

from evaluation.scoring.paired import mcnemar
from validation.rules.rates import FEW_CLUSTERS, Ratio, cluster_ratio

ALPHA = 0.05
NORMAL = NormalDist()
EXTREME = NORMAL.inv_cdf(1 - ALPHA / 2)


@dataclass(frozen=True)
class Difference:
    """Mean of the first model − mean of the second with 95 %, and its two-sided p.

    clusters: how many independent parts the n examples fall into.
    """

    value: float
    low: float
    high: float
    p: float
    n: int
    clusters: int
    method: str


def difference(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
) -> Difference:
    """Two models on the same examples, each scored from 0 to 1. Raises ValueError.

    clusters: of each example, what makes it depend on others (its author, its context).
    Right or wrong on independent examples: McNemar's exact test, and the interval of Bonett and
    Price (2012). Else Student's interval and test, by the differences of whole clusters. With
    fewer than FEW_CLUSTERS the test is exact, over all flips of their signs.
    """
    import numpy as np
    from scipy.special import stdtr

    if len(first) != len(second) or not len(first):
        raise ValueError("Models are compared on the same examples, at least one.")
    both = np.array([first, second], dtype=float)
    gains = both[0] - both[1]
    if clusters is None and ((both == 0) | (both == 1)).all():
        return _mcnemar(int((gains > 0).sum()), int((gains < 0).sum()), len(gains))
    numbers: dict[Hashable, int] = {}
    part = [
        numbers.setdefault(one, len(numbers))
        for one in (range(len(gains)) if clusters is None else clusters)
    ]
    sums, sizes = np.bincount(part, gains), np.bincount(part)
    value, count = float(gains.mean()), len(sizes)
    pairs = list(zip(sums.tolist(), sizes.tolist(), strict=True))
    found = cluster_ratio(pairs) if count > 1 else Ratio(value, inf, 1)
    if count < FEW_CLUSTERS:
        flipped = np.abs(np.array([*product((1, -1), repeat=count)]) @ sums)
        p, method = float((flipped >= abs(sums.sum()) - 1e-9).mean()), "sign-flips"
    else:
        t = value / found.error if found.error else inf if value else 0.0
        # No flip of signs is rarer than this, however small the error looks.
        p, method = max(2 * float(stdtr(found.freedom, -abs(t))), 2.0 ** (1 - count)), "student"
    # Clusters that are all alike leave open what as many examples without a difference would.
    half = found.half or _half(0, 0, count)
    low, high = max(-1.0, value - half), min(1.0, value + half)
    return Difference(value, low, high, p, len(gains), count, method)


@lru_cache(100_000)
def _mcnemar(wins: int, losses: int, n: int) -> Difference:
    value, middle, half = (wins - losses) / n, (wins - losses) / (n + 2), _half(wins, losses, n)
    low, high = max(-1.0, middle - half), min(1.0, middle + half)
    p = mcnemar(wins, losses)
    return Difference(value, min(value, low), max(value, high), p, n, n, "mcnemar")


def _half(wins: int, losses: int, n: int) -> float:
    """Half the width of Bonett and Price's interval of (wins − losses) ÷ n, 95 %."""
    won, lost = (wins + 1) / (n + 2), (losses + 1) / (n + 2)
    return EXTREME * sqrt((won + lost - (won - lost) ** 2) / (n + 2))


def holm(ps: Sequence[float]) -> list[float]:
    """p of tests that stand together, so adjusted that one below α is false in α of all boards.

    Holm 1979; in the order given.
    """
    adjusted, least = [0.0] * len(ps), 0.0
    for rank, number in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        least = max(least, min(1.0, (len(ps) - rank) * ps[number]))
        adjusted[number] = least
    return adjusted


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """p of many slices looked through, so adjusted that of those below α a share of α is false.

    Benjamini and Hochberg 1995; in the order given.
    """
    adjusted, most = [0.0] * len(ps), 1.0
    for rank, number in reversed([*enumerate(sorted(range(len(ps)), key=ps.__getitem__), 1)]):
        most = min(most, len(ps) / rank * ps[number])
        adjusted[number] = most
    return adjusted


def as_shown(ranks: Collection[int]) -> list[str]:
    """1, 2=, 2=, 4: a rank that several have is marked."""
    times = Counter(ranks)
    return [f"{rank}{'=' * (times[rank] > 1)}" for rank in ranks]


def least_examples(half_width: float = 0.05) -> int:
    """The examples (n) that pin an accuracy down to ± half_width (0-1) in 95 % of all samples.

    n = (z ÷ (2 × half_width))², rounded up: at an accuracy of 0.5, where the interval is widest,
    half of it is z × √(0.25 ÷ n).

    >>> least_examples(), least_examples(0.1)
    (385, 97)
    """
    return ceil((EXTREME / (2 * half_width)) ** 2)


def minimum_detectable(
    n: int, base_rate: float, discordance: float | None = None, power: float = 0.8
) -> float | None:
    """The least difference of two accuracies (0-1) that n examples show with that power, α = 0.05.

    discordance: the share of examples that one of the two has right and the other not; unknown it
    is 2 × base rate × (1 − base rate), as if they erred independently. None: no difference shows.
    Connor (1987), solved for the difference. Clustered examples count as their effective number.
    """
    split = 2 * base_rate * (1 - base_rate) if discordance is None else discordance
    z = NORMAL.inv_cdf(power)
    room = n + z**2 - EXTREME**2
    if room < 0:
        return None
    least = sqrt(split) * (EXTREME * sqrt(n) + z * sqrt(room)) / (n + z**2)
    return least if 0 < least <= split else None
