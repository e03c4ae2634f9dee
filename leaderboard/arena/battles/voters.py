"""Statistics of an arena's voters: what each of them chose, and how they answered gold pairs."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, F, Q

from core.accounts.models import Annotator
from leaderboard.models import SIDES, Battle, Comparison
from tasks.models import Task

APART, GOLD, RIGHT = "apart", "gold", "right_gold"
LEAST_GOLD = 5
"""Answers to gold pairs before a share of them is a sign."""


@dataclass(frozen=True)
class Voter:
    """choices: votes by Comparison.Winner; apart: of them those after a model named itself.

    gold, right: answers to gold pairs, and those for the good answer.
    """

    annotator: Annotator
    votes: int
    choices: Mapping[str, int]
    apart: int
    gold: int
    right: int

    @property
    def fails(self) -> bool:
        """Return whether at least half of the answers to several gold pairs are wrong."""
        return self.gold >= LEAST_GOLD and 2 * self.right <= self.gold

    @property
    def one_sided(self) -> bool:
        """Return whether the voter hardly ever takes one of the sides, which are random.

        By chance this happens to at most one in a thousand voters (a binomial's tails beyond 3.3
        standard deviations).
        """
        left, right = (self.choices[side] for side in SIDES)
        return left + right >= 20 and (left - right) ** 2 > 3.3**2 * (left + right)


def voters_of(task: Task) -> list[Voter]:
    """Return who voted in battles: first those who fail gold pairs or take one side, then by votes.

    Three queries.
    """
    voted = Battle.objects.filter(task=task).exclude(winner="")
    choices = voted.filter(gold__isnull=True).values_list("voter", "winner", "names_itself")
    answers = voted.filter(gold__isnull=False).annotate(is_right=Q(winner=F("good")))
    chosen: dict[int, Counter[str]] = defaultdict(Counter)
    for voter, winner, is_apart, count in choices.annotate(Count("pk")):
        chosen[voter].update({winner: count, APART: count * is_apart})
    for voter, is_right, count in answers.values_list("voter", "is_right").annotate(Count("pk")):
        chosen[voter].update({GOLD: count, RIGHT: count * is_right})
    found = [
        Voter(
            one,
            sum(chosen[one.pk][winner] for winner in Comparison.Winner.values),
            {winner: chosen[one.pk][winner] for winner in Comparison.Winner.values},
            *(chosen[one.pk][name] for name in (APART, GOLD, RIGHT)),
        )
        for one in Annotator.objects.filter(pk__in=chosen)
    ]
    return sorted(found, key=lambda one: (not one.fails, not one.one_sided, -one.votes))
