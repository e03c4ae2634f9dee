"""Gold items and quick votes."""

import pytest

from core.accounts.services import get_annotator
from tests.support.judging import write
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.judging import gold
from validation.models import (
    Validation,
)

REFRESHER = "/t/nli/judge/refresher/"


@pytest.fixture
def always(monkeypatch):
    """Each item after the first is gold."""
    monkeypatch.setattr(gold, "GOLD_INTERVAL", 1)


def make_gold(round, author, owner, count=1, label="neutral"):
    made = []
    for number in range(100, 100 + count):
        example = write(round, author, number)
        override_consensus(example=example, owner=owner, choice=Vote(label=label))
        made.append(gold.mark_gold(example=example, owner=owner, explanation="No clue is given."))
    return made


def voted(example, *choices: Vote, by, seconds=4.0):
    """Votes as the site stores them, one by each person."""
    for user, vote in zip(by, choices, strict=False):
        Validation.objects.create(
            example=example,
            validator=get_annotator(user),
            author=example.annotator,
            label=vote.label or "",
            verdict=vote.verdict or "",
            seconds=seconds,
        )
