"""Rounds with votes: one for the second opinion, and finished ones for the forecast."""

import pytest

from annotation.models import TargetOutput
from core.accounts.services import get_annotator
from tasks.models import Round, TargetVersion
from tests.support.factories import ContextFactory, RoundFactory, UserFactory, scripted_target
from tests.support.gold_items import voted
from tests.support.judging import decide_many, write, write_many
from validation.consensus.consensus import Vote
from validation.models import Validation

NEUTRAL, ENTAILMENT = Vote("neutral"), Vote("entailment")


@pytest.fixture
def judged(nli, bob):
    """Three careful people and one who says the same of everything."""
    people = [UserFactory() for _ in range(4)]
    for number in range(20):
        truth = ENTAILMENT if number % 2 else NEUTRAL
        voted(write(nli, bob, number), truth, truth, truth, NEUTRAL, by=people)
    return people


def finish_round(task, number, catches, owner, state=Round.State.CLOSED):
    """A finished round with ten decided examples, of which these are catches."""
    round = RoundFactory(task=task, number=number, state=state)
    ContextFactory(round=round)
    outcomes = ["fooled"] * catches + ["not_fooled"] * (10 - catches)
    examples = write_many(round, UserFactory(), outcomes)
    target = scripted_target(round, name=f"model-{number}")
    version = TargetVersion.objects.create(target=target, digest=f"{number}")
    TargetOutput.objects.bulk_create(
        TargetOutput(
            example=example,
            target=target,
            version=version,
            output={"label": "entailment" if example.outcome == "fooled" else "neutral"},
            seconds=0.1,
            fooled=example.outcome == "fooled",
        )
        for example in examples
    )
    judges = [get_annotator(UserFactory()) for _ in range(2)]
    Validation.objects.bulk_create(
        Validation(example=example, validator=judge, label="neutral")
        for example in examples
        for judge in judges
    )
    decide_many(examples, ["neutral"] * 10, owner)
    return round
