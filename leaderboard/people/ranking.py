"""The ranking of people by the lower end of their rate's interval, with shared ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.ranking.ranks import compute_shared_ranks, label_ranks
from validation.rates.rates import compute_wilson_interval

TOP_LINES = 10
NEIGHBOUR_LINES = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """A person's counts in a task: `tries` (at least 1), and `fooled`, the confirmed catches."""

    pseudonym: str
    tries: int
    fooled: int

    @property
    def rate(self) -> float:
        """Return confirmed model errors ÷ tries (0-1)."""
        return self.fooled / self.tries

    @property
    def low(self) -> float:
        """Return the lower end of Wilson's 95% interval, by which people are ordered."""
        return compute_wilson_interval(self.fooled, self.tries)[0]

    @property
    def high(self) -> float:
        """Return the upper end of Wilson's 95% interval."""
        return compute_wilson_interval(self.fooled, self.tries)[1]


@dataclass(frozen=True, slots=True)
class RankingLine:
    """A line of the ranking. rank: 2, or 2= if shared. is_after_gap: lines before it are left out.

    is_mine: whether the line is the reader's own.
    """

    rank: str
    standing: Standing
    is_mine: bool = False
    is_after_gap: bool = False


def rank_people(standings: Sequence[Standing]) -> list[tuple[str, Standing]]:
    """Rank by the lower end of the interval; equal ends share a rank and are sorted by name."""
    # By the low end, because otherwise one lucky try would beat many good ones.
    ordered_standings = sorted(standings, key=lambda standing: (-standing.low, standing.pseudonym))
    # Ranks depend only on the interval, so names do not separate equal people.
    labels = label_ranks(compute_shared_ranks([standing.low for standing in ordered_standings]))
    return list(zip(labels, ordered_standings, strict=True))


def select_ranking_lines(standings: Sequence[Standing], pseudonym: str) -> list[RankingLine]:
    """Return the first ten lines, and those within three lines of the reader's own."""
    ranked_standings = rank_people(standings)
    own_index = None
    for index, (_, standing) in enumerate(ranked_standings):
        if standing.pseudonym == pseudonym:
            own_index = index
    lines: list[RankingLine] = []
    last_index = -1
    for index, (rank, standing) in enumerate(ranked_standings):
        is_near = own_index is not None and abs(index - own_index) <= NEIGHBOUR_LINES
        if index < TOP_LINES or is_near:
            is_after_gap = index > last_index + 1
            lines.append(RankingLine(rank, standing, index == own_index, is_after_gap))
            last_index = index
    return lines
