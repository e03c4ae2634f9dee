"""Random assignment: draws without replacement from an urn that is refilled when it is empty. Pure.

An urn holds each arm as often as its ratio says. So after each round of draws the arms are
balanced, and the probability of every draw is known. Between people, each stratum has an urn.
Within people, each person has one, and is in each arm once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple


class ArmDraw(NamedTuple):
    """An arm that was drawn, and the probability that it had in this draw."""

    arm: str
    probability: float


def fill_urn(ratios: Sequence[int]) -> list[int]:
    """Return the indices of the arms in a full urn, each as often as its ratio says."""
    urn: list[int] = []
    for arm, ratio in enumerate(ratios):
        urn += [arm] * ratio
    return urn


def count_remaining_arms(ratios: Mapping[str, int], earlier_arms: Iterable[str]) -> Counter[str]:
    """Return how often each arm is still in an urn, given all arms that were drawn from it."""
    remaining = Counter(ratios)
    for arm in earlier_arms:
        remaining[arm] -= 1
        if not remaining.total():
            remaining = Counter(ratios)
    return remaining


def draw_arm(ratios: Mapping[str, int], earlier_arms: Iterable[str], random: Random) -> ArmDraw:
    """Draw the next arm of an urn, given all arms that were drawn from it so far.

    ratios: the arms of a full urn, by name. The probability is the arm's share of what the urn
    still holds, so the last draw before a refill has the probability 1.
    """
    remaining = count_remaining_arms(ratios, earlier_arms)
    urn: list[str] = []
    # In the order of the plan, so that a seed draws the same arms again.
    for arm in ratios:
        urn += [arm] * remaining[arm]
    arm = random.choice(urn)
    return ArmDraw(arm, remaining[arm] / len(urn))
