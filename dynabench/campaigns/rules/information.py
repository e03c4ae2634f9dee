"""The share of a bonus that a catch earns by its information. Pure.

Paying each catch the same rewards tricks that fool people, too (Sung et al. 2024). See
docs/campaigns.md, "Bonus by information".
"""

from collections.abc import Sequence
from dataclasses import dataclass

AMBIGUITY_WEIGHT = 0.5
"""How much an ambiguity of 1 takes away."""


@dataclass(frozen=True)
class CatchFacts:
    """What is known of a catch when it is decided.

    right_votes, votes: of people, without reports. wrong_models, models: of those that were asked.
    answer_votes: the number of votes for each answer. discrimination: of the item; None if unknown.
    """

    right_votes: int
    votes: int
    wrong_models: int
    models: int
    answer_votes: Sequence[int]
    discrimination: float | None = None


def compute_information(facts: CatchFacts) -> float:
    """Return the information of a catch, from 0 to 1 in hundredths.

    It is people right × models wrong × discrimination − ½ × ambiguity, limited to 0 to 1. All four
    are shares: the discrimination is limited to 0 to 1, and is 1 while it is unknown, so that
    nobody is paid less for what we don't know. Ambiguity is the chance that two of the votes
    differ, 1 − Σ p² (Simpson 1949).

    >>> compute_information(CatchFacts(3, 3, 1, 1, [3]))
    1.0
    >>> compute_information(CatchFacts(2, 3, 1, 1, [2, 1]))
    0.44
    """
    # An owner may decide without votes, and then nobody disagrees.
    people_right = facts.right_votes / facts.votes if facts.votes else 1.0
    models_wrong = facts.wrong_models / facts.models if facts.models else 1.0
    discrimination = 1.0
    if facts.discrimination is not None:
        discrimination = min(1.0, max(0.0, facts.discrimination))
    # From the same votes: a trick that splits people loses twice, as it should.
    ambiguity = 0.0
    if total := sum(facts.answer_votes):
        ambiguity = 1 - sum((count / total) ** 2 for count in facts.answer_votes)
    information = people_right * models_wrong * discrimination - AMBIGUITY_WEIGHT * ambiguity
    return round(min(1.0, max(0.0, information)), 2)
