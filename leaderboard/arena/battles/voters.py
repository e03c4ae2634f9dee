"""Statistics of an arena's voters: the choices of each, and their answers to gold pairs."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, F, Q

from core.accounts.models import Annotator
from leaderboard.models import Battle, Comparison
from tasks.models import Task

APART, GOLD, RIGHT = "apart", "gold", "right_gold"
MIN_GOLD_ANSWERS = 5
"""Answers to gold pairs from which a share of wrong ones means something."""


@dataclass(frozen=True)
class Voter:
    """A voter's votes by Comparison.Winner, and their answers to gold pairs.

    apart: votes cast after a model named itself, which do not count. gold: answers to gold pairs.
    right: the answers to gold pairs that chose the good answer.
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
        return self.gold >= MIN_GOLD_ANSWERS and 2 * self.right <= self.gold

    @property
    def one_sided(self) -> bool:
        """Return whether the voter almost always chooses the same side, although sides are random.

        By chance this happens to at most one in a thousand voters (the tails of a binomial beyond
        3.3 standard deviations).
        """
        left, right = self.choices["left"], self.choices["right"]
        # With fewer votes the normal approximation is too coarse.
        return left + right >= 20 and (left - right) ** 2 > 3.3**2 * (left + right)


def list_voters(task: Task) -> list[Voter]:
    """Return the voters of battles, most suspicious first, then by votes.

    Suspicious are voters who fail gold pairs or favour one side. Three queries.
    """
    voted = Battle.objects.filter(task=task).exclude(winner="")
    choices = voted.filter(gold__isnull=True).values_list("voter", "winner", "names_itself")
    answers = voted.filter(gold__isnull=False).annotate(is_right=Q(winner=F("good")))
    # By voter: votes by winner, and under three further keys what else is counted.
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for voter, winner, is_apart, count in choices.annotate(Count("pk")):
        counts[voter][winner] += count
        if is_apart:
            counts[voter][APART] += count
    for voter, is_right, count in answers.values_list("voter", "is_right").annotate(Count("pk")):
        counts[voter][GOLD] += count
        if is_right:
            counts[voter][RIGHT] += count
    voters = []
    for annotator in Annotator.objects.filter(pk__in=counts):
        of_voter = counts[annotator.pk]
        votes = {winner: of_voter[winner] for winner in Comparison.Winner.values}
        voter_row = Voter(
            annotator=annotator,
            votes=sum(votes.values()),
            choices=votes,
            apart=of_voter[APART],
            gold=of_voter[GOLD],
            right=of_voter[RIGHT],
        )
        voters.append(voter_row)
    return sorted(voters, key=lambda voter: (not voter.fails, not voter.one_sided, -voter.votes))
