"""Statistics of an arena's voters: the choices of each, and their answers to gold pairs."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, F, Q

from core.accounts.models import Annotator
from leaderboard.models import RANKED, Battle, Comparison
from tasks.models import Task

UNBLINDED, GOLD, CORRECT_GOLD = "unblinded", "gold", "correct_gold"
MIN_GOLD_ANSWERS = 5
"""The fewest answers to gold pairs by which a voter can fail."""


@dataclass(frozen=True)
class Voter:
    """A voter's votes by Comparison.Winner or RANKED, and their answers to gold pairs.

    unblinded_votes: the number of votes cast after a model named itself, which do not count.
    gold_answers: the number of answers to gold pairs. correct_gold_answers: how many of these
    chose the good answer.
    """

    annotator: Annotator
    votes: int
    choices: Mapping[str, int]
    unblinded_votes: int
    gold_answers: int
    correct_gold_answers: int

    @property
    def has_failed_gold(self) -> bool:
        """Return whether at least half of the answers to several gold pairs are wrong."""
        return (
            self.gold_answers >= MIN_GOLD_ANSWERS
            and 2 * self.correct_gold_answers <= self.gold_answers
        )

    @property
    def is_one_sided(self) -> bool:
        """Return whether the voter almost always chooses the same side, although sides are random.

        By chance this happens to at most one in a thousand voters (the tails of a binomial beyond
        3.3 standard deviations).
        """
        left, right = self.choices["left"], self.choices["right"]
        # With fewer votes the normal approximation is too coarse.
        return left + right >= 20 and (left - right) ** 2 > 3.3**2 * (left + right)


def list_voters(task: Task) -> list[Voter]:
    """Return the voters of battles, most suspicious first, then by votes.

    Voters are suspicious if they fail gold pairs or favour one side. Three queries.
    """
    ended_battles = Battle.objects.filter(task=task).exclude(winner="")
    choices = ended_battles.filter(gold__isnull=True).values_list("voter", "winner", "names_itself")
    answers = ended_battles.filter(gold__isnull=False).annotate(is_right=Q(winner=F("good")))
    # By voter: votes by winner, and further counts under three more keys.
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for voter, winner, is_unblinded, count in choices.annotate(Count("pk")):
        counts[voter][winner] += count
        if is_unblinded:
            counts[voter][UNBLINDED] += count
    for voter, is_right, count in answers.values_list("voter", "is_right").annotate(Count("pk")):
        counts[voter][GOLD] += count
        if is_right:
            counts[voter][CORRECT_GOLD] += count
    voters = []
    for annotator in Annotator.objects.filter(pk__in=counts):
        voter_counts = counts[annotator.pk]
        votes = {winner: voter_counts[winner] for winner in (*Comparison.Winner.values, RANKED)}
        voter_row = Voter(
            annotator=annotator,
            votes=sum(votes.values()),
            choices=votes,
            unblinded_votes=voter_counts[UNBLINDED],
            gold_answers=voter_counts[GOLD],
            correct_gold_answers=voter_counts[CORRECT_GOLD],
        )
        voters.append(voter_row)
    return sorted(
        voters, key=lambda voter: (not voter.has_failed_gold, not voter.is_one_sided, -voter.votes)
    )
