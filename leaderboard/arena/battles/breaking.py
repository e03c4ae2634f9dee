"""Rankings of several answers as votes on pairs, with the weight of each pair. Pure.

docs/statistics.md states the assumption behind this.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple


class PairVote(NamedTuple):
    """A vote on a pair of sides.

    winner: "left" for the first side, "right", or "tie"; with two answers also "both_bad".
    """

    first: str
    second: str
    winner: str
    weight: float

    @property
    def pair(self) -> str:
        """Return the names of both sides as one."""
        return f"{self.first}-{self.second}"


def list_pair_votes(winner: str, ranking: Mapping[str, int] | None) -> list[PairVote]:
    """Return the votes on pairs that the vote of a battle consists of.

    winner: of two answers. ranking: the place of each side; None with two answers.
    """
    if not ranking:
        return [PairVote("left", "right", winner, 1.0)]
    # In the order of the page, which the database does not keep: left, right, s3.
    return break_ranking({side: ranking[side] for side in sorted(ranking)})


def break_ranking(ranking: Mapping[str, int]) -> list[PairVote]:
    """Return a vote for each pair of a ranking's sides.

    A ranking of k answers has k (k − 1) ÷ 2 pairs, but only k − 1 independent choices: the best
    answer, the best of the others, and so on. So each pair has the weight 2 ÷ k, and all pairs of a
    ranking together weigh k − 1.

    ranking: the place of each side. Sides with the same place are tied.

    >>> break_ranking({"a": 2, "b": 1})
    [PairVote(first='a', second='b', winner='right', weight=1.0)]
    """
    weight = 2 / len(ranking)
    votes = []
    for first, second in combinations(ranking, 2):
        # A lower number is a better place.
        winner = "tie"
        if ranking[first] < ranking[second]:
            winner = "left"
        elif ranking[first] > ranking[second]:
            winner = "right"
        votes.append(PairVote(first, second, winner, weight))
    return votes
