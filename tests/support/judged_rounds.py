"""A round with votes for the second opinion."""

import pytest

from tests.support.factories import UserFactory
from tests.support.gold_items import voted
from tests.support.judging import write
from validation.consensus.consensus import Vote

NEUTRAL, ENTAILMENT = Vote("neutral"), Vote("entailment")


@pytest.fixture
def judged(nli, bob):
    """Three careful people and one who says the same of everything."""
    people = [UserFactory() for _ in range(4)]
    for number in range(20):
        truth = ENTAILMENT if number % 2 else NEUTRAL
        voted(write(nli, bob, number), truth, truth, truth, NEUTRAL, by=people)
    return people
