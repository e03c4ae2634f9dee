"""Owners change a round's policy at the same time, while people vote."""

import random

import pytest

from annotation.models import Example
from core.accounts.models import Annotator
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.racing_votes import LABELS, POLICIES, examples
from validation.consensus.consensus import Policy, decide_by_votes
from validation.decisions.policy_preview import preview_policy
from validation.decisions.services import change_policy, derive_round
from validation.models import Consensus, RoundPolicy, Validation

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_last_policy_holds_for_every_example(at_once, monkeypatch):
    """Lock: the examples, in `derive_round`; each hundred of them reads the policy again."""
    monkeypatch.setattr("validation.decisions.services.CHUNK_EXAMPLES", 5)
    round = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory(round=round)
    people = [Annotator.objects.create(pseudonym=f"w-{number}") for number in range(6)]
    for example in examples(round, people[:1], 40):
        for person in people[1:]:
            Validation.objects.create(
                example=example, validator=person, label=random.choice(LABELS)
            )
    owners = [UserFactory() for _ in POLICIES]

    def apply(case: tuple) -> None:
        owner, policy = case
        change_policy(round=round, owner=owner, policy=policy)
        derive_round(round=round)

    for _ in range(4):
        at_once(apply, list(zip(owners, POLICIES, strict=True)))
        policy = Policy(**RoundPolicy.objects.get(round=round).policy)
        stored = Consensus.objects.in_bulk()
        for example in Example.objects.prefetch_related("validations"):
            said = decide_by_votes([vote.vote for vote in example.validations.all()], policy)
            assert (stored[example.pk].state, stored[example.pk].label) == (
                said.state,
                said.label or "",
            )
        assert preview_policy(round, policy).changed == 0
