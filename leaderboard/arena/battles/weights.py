"""How much a battle counts whose models were drawn with unequal chances. Pure, without numpy.

docs/statistics.md (Battles chosen by information) says why.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

UNIFORM_SHARE = 0.1
"""The share of the battles whose pair is drawn with equal chances. So no weight exceeds 10."""


def compute_shown_chance(
    chances: Mapping[frozenset[int], float], contestants: Sequence[int]
) -> float:
    """Return the mean chance of the pairs among the models that a battle shows.

    With two models it is the chance of their pair. A third model and further ones are added with
    equal chances to any drawn pair. So the chance of the whole set of models, divided by its
    chance if all pairs were equally likely, is this mean divided by the mean over all pairs.
    chances: the chance of each pair that could be drawn, by the ids of both models.
    """
    return fmean(chances[frozenset(pair)] for pair in combinations(contestants, 2))


def compute_draw_weight(chance: float | None, pair_count: int | None) -> float:
    """Return how much a battle counts, at most 1 ÷ UNIFORM_SHARE and on average 1.

    It is the chance that equal chances would have given, divided by the chance that was used.
    chance: the mean chance of the pairs that were shown. pair_count: the number of pairs that
    could be drawn. If one of them is not known, as of older battles, the weight is 1.

    >>> compute_draw_weight(0.5, 10)
    0.2
    """
    if chance is None or pair_count is None:
        return 1.0
    return 1 / (pair_count * chance)
