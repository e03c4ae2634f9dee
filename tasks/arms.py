"""Arms of a mixed round: who writes its texts, and with which help. Pure.

The shares of a round are parts of a whole: of people 2, helped 1 and machines 1, people without
help write half of the texts.
"""

from collections.abc import Mapping
from math import gcd

PEOPLE, HELPED, DRAFTS, MACHINES = "people", "helped", "drafts", "machines"
ARMS = (PEOPLE, HELPED, DRAFTS, MACHINES)
PEOPLE_ARMS = (PEOPLE, HELPED, DRAFTS)
"""The arms between which a person's texts are assigned at random."""
SUGGESTED_ARMS = (HELPED, DRAFTS)
"""The arms that need the task's suggestion model."""
MAX_PARTS = 10
"""The maximum number of parts of an arm. A person's urn has at most three times as many draws."""
MACHINE_LEAD = 20
"""How many texts machines may be ahead of their share, so that they need not wait for people."""


def reduce_shares(shares: Mapping[str, int]) -> dict[str, int]:
    """Return the people's arms with the smallest parts of the same ratio; arms of 0 are left out.

    >>> reduce_shares({"people": 4, "helped": 2, "drafts": 0, "machines": 1})
    {'people': 2, 'helped': 1}
    """
    ratios = {arm: shares[arm] for arm in PEOPLE_ARMS if shares.get(arm)}
    divisor = gcd(*ratios.values())
    return {arm: parts // divisor for arm, parts in ratios.items()}


def compute_shares(shares: Mapping[str, int]) -> dict[str, float]:
    """Return each arm's share of the texts (0-1)."""
    total = sum(shares.values())
    return {arm: shares.get(arm, 0) / total for arm in ARMS}


def count_allowed_machine_texts(shares: Mapping[str, int], people_texts: int) -> int:
    """Return how many texts machines may have written when people have written `people_texts`.

    0 if machines have no share. Otherwise their share, and MACHINE_LEAD more.
    """
    if not shares.get(MACHINES):
        return 0
    people_parts = sum(shares.get(arm, 0) for arm in PEOPLE_ARMS)
    return people_texts * shares[MACHINES] // people_parts + MACHINE_LEAD
