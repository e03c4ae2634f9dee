"""Numbers about authors and validators, for the owners of a task."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.models import Example
from core.accounts.services import get_annotator
from tests.support.factories import UserFactory
from tests.support.gold_items import voted
from tests.support.judging import write
from tests.support.policies import rederive
from validation.consensus.consensus import Policy, Vote
from validation.consensus.gold_check import Check
from validation.models import Skip
from validation.rates.rates import Undefined
from validation.statistics.people import list_author_statistics, list_validator_statistics


@pytest.fixture
def voters(db):
    return [UserFactory() for _ in range(4)]


NEUTRAL, ENTAILMENT = Vote("neutral"), Vote("entailment")
FLAG, CANNOT_TELL = Vote(verdict="flagged"), Vote(verdict="cannot_tell")


def test_an_author_in_numbers(nli, bob, voters):
    now = timezone.now()
    for number, said in enumerate([NEUTRAL, NEUTRAL, ENTAILMENT, FLAG]):
        example = write(nli, bob, number, outcome="no_model" if number == 1 else "fooled")
        voted(example, said, said, said, by=voters)
    write(nli, bob, 7, outcome="not_fooled")
    Example.objects.filter(pk=write(nli, bob, 8).pk).update(retracted_at=now)
    Example.objects.filter(retracted_at=None).update(
        shown_at=now - timedelta(seconds=30), created_at=now
    )
    rederive(round=nli, policy=Policy())
    write(nli, UserFactory())
    found, other = list_author_statistics([nli])
    assert found.annotator == get_annotator(bob)
    assert (found.tries, found.fooled, found.judged) == (5, 3, 4)
    assert (found.validity.value, found.validity.n) == (0.5, 4)
    assert (found.vmer.value, found.vmer.n) == (1 / 5, 5)
    assert (found.label_flip.value, found.label_flip.n) == (0.25, 4)  # a flag is no other label
    assert found.median_seconds == pytest.approx(30)
    assert other.tries == 1
    for name in ("validity", "vmer", "label_flip", "median_seconds"):
        assert isinstance(getattr(other, name), Undefined), name


def test_a_validator_in_numbers(nli, bob, voters):
    for number in range(4):
        said = ENTAILMENT if number == 3 else NEUTRAL
        voted(write(nli, bob, number), said, NEUTRAL, by=voters, seconds=2.0 + number)
    alone = write(nli, bob, 9)
    voted(alone, CANNOT_TELL, FLAG, NEUTRAL, by=voters, seconds=None)
    Skip.objects.create(example=alone, validator=get_annotator(voters[3]))
    Skip.objects.create(example=write(nli, bob, 10), validator=get_annotator(voters[0]))
    first, second, third = list_validator_statistics([nli])
    assert {first.annotator, second.annotator} == {get_annotator(v) for v in voters[:2]}
    if first.annotator != get_annotator(voters[0]):  # equally many votes: by pseudonym
        first, second = second, first
    assert (first.votes, first.flags, first.skips) == (5, 0, 1)
    assert (second.votes, second.flags, second.skips) == (5, 1, 0)
    assert (first.cannot_tell.value, first.cannot_tell.n) == (0.2, 5)
    assert first.median_seconds == 3.5
    assert (first.reliability.value, first.reliability.n) == (0.75, 4)
    assert first.reliability.low < 0.75
    assert first.kappa < 0.75
    assert first.gold_check is Check.UNKNOWN
    assert third.annotator == get_annotator(voters[2])
    assert isinstance(third.reliability, Undefined)
    assert isinstance(third.median_seconds, Undefined)


def test_free_text_has_no_reliability(nli, bob, voters):
    for number in range(61):
        voted(write(nli, bob, number), Vote(str(number)), NEUTRAL, by=voters)
    found = list_validator_statistics([nli])
    assert all(isinstance(one.kappa, Undefined) for one in found)


@pytest.mark.parametrize("statistics", [list_author_statistics, list_validator_statistics])
def test_as_many_queries_for_many_people(nli, bob, statistics):
    counts = []
    for size in (2, 9):
        for number in range(size):
            people = [UserFactory() for _ in range(3)]
            voted(write(nli, people[0], size * 100 + number), NEUTRAL, NEUTRAL, by=people[1:])
        with CaptureQueriesContext(connection) as queries:
            assert len(statistics([nli])) >= size
        counts.append(len(queries))
    assert counts[0] == counts[1]
