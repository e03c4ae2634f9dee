"""The public numbers told a judge the author's label: they voted, looked, undid and voted again.

A vote that decides an example moves the round's count of verified examples, or not, by the label
that the author meant. Who takes such a vote back leaves the example to others.
"""

import pytest

from core.accounts.services import get_annotator
from tests.support.factories import UserFactory
from tests.support.judging import write
from validation.consensus.consensus import Vote
from validation.judging.blind import AlreadyShown
from validation.judging.services import cast_validation, lease_next, undo_validation
from validation.models import Consensus, Validation

pytestmark = pytest.mark.django_db


def vote(nli, person, label="neutral"):
    me = get_annotator(person)
    lease_next(validator=me, task=nli.task)
    return cast_validation(validator=me, example=nli.examples.get(), vote=Vote(label=label))


@pytest.fixture
def example(nli, bob):
    return write(nli, bob, 1, label="neutral", hypothesis="So it is.")


@pytest.fixture
def nearly_decided(nli, example):
    """Two of three equal votes are there."""
    for _ in range(2):
        vote(nli, UserFactory())
    return example


def test_whoever_undoes_a_vote_that_decided_judges_it_no_more(nli, nearly_decided, alice):
    last = vote(nli, alice)
    assert Consensus.objects.get().state == "decided"
    me = get_annotator(alice)
    undo_validation(validator=me, validation=last)
    assert Consensus.objects.get().state == "undecided"
    assert lease_next(validator=me, task=nli.task) is None
    with pytest.raises(AlreadyShown):
        cast_validation(validator=me, example=nearly_decided, vote=Vote(label="entailment"))
    assert Validation.objects.filter(validator=me).count() == 0
    assert lease_next(validator=get_annotator(UserFactory()), task=nli.task)  # others do


def test_a_vote_that_decided_nothing_may_be_given_anew(nli, example, alice):
    first = vote(nli, alice)
    me = get_annotator(alice)
    undo_validation(validator=me, validation=first)
    assert lease_next(validator=me, task=nli.task).example == example
    vote(nli, alice, "entailment")
    assert Validation.objects.get(validator=me).label == "entailment"


def test_a_vote_that_came_before_the_decision_counts_as_one(nli, example, alice):
    """Others decided after it: the numbers have moved, too."""
    early = vote(nli, alice)
    for _ in range(2):
        vote(nli, UserFactory())
    me = get_annotator(alice)
    undo_validation(validator=me, validation=early)
    assert lease_next(validator=me, task=nli.task) is None
