"""Which of two models is better on the same examples, and which ranks that leaves open.

docs/statistics.md tells the tests and their sources in words.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from math import sqrt
from statistics import NormalDist

from evaluation.scoring.paired import mcnemar
from validation.rules.rates import FEW_CLUSTERS, bootstrap_ratio

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


@dataclass(frozen=True)
class Place:
    """Where a model may stand: from `first` to `last`. shown: `first`, as 2= where it is shared."""

    shown: str
    first: int
    last: int


def difference(
    first: Sequence[float],
    second: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Difference:
    """Two models on the same examples, each scored from 0 to 1. Raises ValueError.

    clusters: of each example, what makes it depend on others (its author, its context).
    Right or wrong on independent examples: McNemar's exact test, and the interval of Bonett and
    Price (2012). Else the interval draws whole clusters; p is normal, with the standard error
    between clusters. With fewer than FEW_CLUSTERS it is exact, over all flips of their signs.
    """
    import numpy as np

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
    low, high = bootstrap_ratio(list(zip(sums.tolist(), sizes.tolist(), strict=True)), seed)
    if count < FEW_CLUSTERS:
        flipped = np.abs(np.array([*product((1, -1), repeat=count)]) @ sums)
        p, method = float((flipped >= abs(sums.sum()) - 1e-9).mean()), "sign-flips"
    else:
        error = sqrt(count / (count - 1) * ((sums - value * sizes) ** 2).sum()) / len(gains)
        tail = NORMAL.cdf(-abs(value) / error) if error else 0.5 * (value == 0)
        # No flip of signs is rarer than this, however small the error looks.
        p, method = max(2 * tail, 2.0 ** (1 - count)), "bootstrap"
    return Difference(value, min(value, low), max(value, high), p, len(gains), count, method)


@lru_cache(100_000)
def _mcnemar(wins: int, losses: int, n: int) -> Difference:
    won, lost, value = (wins + 1) / (n + 2), (losses + 1) / (n + 2), (wins - losses) / n
    half = EXTREME * sqrt((won + lost - (won - lost) ** 2) / (n + 2))
    low, high = max(-1.0, won - lost - half), min(1.0, won - lost + half)
    p = mcnemar(wins, losses)
    return Difference(value, min(value, low), max(value, high), p, n, n, "mcnemar")


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


def places(models: Collection[str], better: Iterable[tuple[str, str]]) -> dict[str, Place]:
    """Each model's ranks: from 1 + those surely better to n − those surely worse.

    better: pairs of a model and one that it surely beats.
    """
    pairs = set(better)
    above, below = Counter(lost for _, lost in pairs), Counter(won for won, _ in pairs)
    firsts = {model: 1 + above[model] for model in models}
    return {
        model: Place(shown, first, len(models) - below[model])
        for (model, first), shown in zip(firsts.items(), as_shown(firsts.values()), strict=True)
    }


def board(
    scores: Mapping[str, Sequence[float]],
    clusters: Sequence[Hashable] | None = None,
    alpha: float = ALPHA,
    seed: int = 0,
) -> dict[str, Place]:
    """The ranks that a dataset leaves open, by paired tests of all pairs with Holm's correction.

    scores: of each model, how right it is on each example (0-1), in the same order.
    """
    pairs = [*combinations(scores, 2)]
    found = [difference(scores[one], scores[other], clusters, seed) for one, other in pairs]
    sure = [p <= alpha for p in holm([each.p for each in found])]
    return places(
        scores,
        (
            pair if each.value > 0 else pair[::-1]
            for pair, each, is_sure in zip(pairs, found, sure, strict=True)
            if is_sure
        ),
    )


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
