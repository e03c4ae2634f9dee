"""The order of people: one rate, its interval's lower end, and shared ranks."""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.scoring.ranks import as_shown
from validation.rules.rates import wilson

TOP = 10
NEIGHBOURS = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """Somebody in a task: `tries` (at least 1), of them `fooled`: verified model errors."""

    pseudonym: str
    tries: int
    fooled: int

    @property
    def rate(self) -> float:
        """Return verified model errors ÷ tries (0-1)."""
        return self.fooled / self.tries

    @property
    def low(self) -> float:
        """Return the lower end of Wilson's interval of 95 %, by which people are ordered."""
        return wilson(self.fooled, self.tries)[0]

    @property
    def high(self) -> float:
        """Return the upper end of Wilson's interval of 95 %."""
        return wilson(self.fooled, self.tries)[1]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the ranking; `rank` is 2, or 2= where shared. Gap: lines before it are left out."""

    rank: str
    standing: Standing
    is_mine: bool = False
    after_gap: bool = False


def ranked(standings: Sequence[Standing]) -> list[tuple[str, Standing]]:
    """Rank by the lower end of the interval, then by name; equal ends share a rank."""
    scored = sorted((-one.low, one.pseudonym, one) for one in standings)
    before: dict[float, int] = {}
    for number, (low, _, _) in enumerate(scored):
        before.setdefault(low, number)
    shown = as_shown([before[low] + 1 for low, _, _ in scored])
    return [(rank, one) for rank, (_, _, one) in zip(shown, scored, strict=True)]


def shown(standings: Sequence[Standing], mine: str) -> list[Place]:
    """Return the first ten lines, and those up to three lines from one's own."""
    lines = ranked(standings)
    own = next((n for n, (_, one) in enumerate(lines) if one.pseudonym == mine), -NEIGHBOURS - 1)
    kept = [n for n in range(len(lines)) if n < TOP or abs(n - own) <= NEIGHBOURS]
    return [
        Place(*lines[n], is_mine=n == own, after_gap=n > TOP and n - 1 not in kept) for n in kept
    ]
