"""Rounds whose votes are split."""

import pytest

from core.accounts.services import get_annotator
from tests.support.factories import UserFactory
from tests.support.judging import write
from tests.support.policies import rederive
from validation.consensus.consensus import Policy
from validation.decisions import review_queue
from validation.models import Validation


@pytest.fixture
def people(db):
    return [get_annotator(UserFactory()) for _ in range(3)]


def judged(round, author, people, *labels, number=0):
    """An example with these votes."""
    example = write(round, author, number)
    for person, label in zip(people, labels, strict=True):
        Validation.objects.create(example=example, validator=person, label=label)
    rederive(round=round, policy=Policy("plurality", of=len(labels)))
    return example


@pytest.fixture
def split(nli, bob, people, monkeypatch):
    """An example that two of three found neutral, as its author says; no sample is drawn."""
    monkeypatch.setattr(review_queue, "is_sampled_for_review", lambda uuid, secret: False)
    return judged(nli, bob, people, "neutral", "neutral", "entailment")
