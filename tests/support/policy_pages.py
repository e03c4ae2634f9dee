"""Policies of rounds, and a round judged by them."""

import pytest

from core.accounts.services import get_annotator
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from tests.support.judging import write
from tests.support.policies import rederive
from validation.consensus.consensus import Policy
from validation.judging.queue_services import fill_queue
from validation.models import Consensus, Validation

VOTES = [
    ("neutral", "neutral", "entailment"),  # verified by most of three, not by 3 equal votes
    ("entailment", "entailment", "neutral"),  # decided against the author
    ("neutral", "entailment", "contradiction"),
    ("neutral", "neutral", "neutral"),
    (),
]


@pytest.fixture
def judged(nli, alice, bob):
    """Five examples of Bob, which 3 equal votes of 5 decide; Alice edits the task."""
    TaskMember.objects.create(task=nli.task, user=alice, role="editor")
    people = [get_annotator(UserFactory()) for _ in range(3)]
    for number, labels in enumerate(VOTES):
        example = write(nli, bob, number)
        for person, label in zip(people, labels, strict=False):
            Validation.objects.create(example=example, validator=person, label=label)
    fill_queue(round=nli)
    rederive(round=nli, policy=Policy("at-least", 3, 5))
    return nli


def stored():
    names = ("state", "label", "verdict", "is_verified", "is_validated_error", "still_needed")
    return list(Consensus.objects.order_by("pk").values_list(*names))


POLICIES = [
    Policy("n-equal", 2),
    Policy("strict", of=3),
    Policy("plurality", of=3),
    Policy("at-least", 4, 7),
    Policy("n-equal", 1),
]
