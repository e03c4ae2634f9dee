"""Who leaves takes their words along, whatever happens at the same instant."""

import contextlib
import threading
import uuid

import pytest
from django.db import transaction

from annotation.attempts.services import begin_attempt, finish_attempt
from annotation.context_picking.services import assign
from annotation.erasure import erase_examples
from annotation.models import Assignment, Example, TextVector
from annotation.vector_services import store_vectors
from core.accounts.models import Annotator, User
from core.accounts.services import get_annotator
from core.errors import Refused
from dynabench.people.deletion.services import delete_person, purge_deleted
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.races import races, wait_for
from validation.consensus.consensus import Vote
from validation.judging.services import cast_validation, lease_next
from validation.models import Consensus, Validation

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(8)


@pytest.fixture
def round():
    made = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory.create_batch(2, round=made)
    return made


def texts():
    return [
        inputs
        for inputs in Example.objects.values_list("inputs", flat=True)
        if "hypothesis" in inputs
    ]


@pytest.mark.parametrize("time", REPEATS)
def test_votes_while_the_author_leaves(round, at_once, time):
    author = UserFactory()
    Example.objects.bulk_create(
        Example(
            round=round,
            context=round.contexts.first(),
            annotator=author.annotator,
            inputs={"hypothesis": str(n), "label": "neutral"},
            digest=str(n),
            outcome="fooled",
        )
        for n in range(6)
    )
    judges = [get_annotator(UserFactory()) for _ in range(6)]
    for judge in judges:
        assert lease_next(validator=judge, task=round.task)

    def act(who):
        if isinstance(who, User):
            return delete_person(user=who)
        example = who.judge_leases.get().example
        with contextlib.suppress(Refused):
            cast_validation(validator=who, example=example, vote=Vote(label="neutral"))

    at_once(act, [author, *judges])
    assert not texts()
    assert not Example.objects.filter(retracted_at=None).exists()
    voted = Validation.objects.values("example").distinct().count()
    assert Consensus.objects.count() == voted


@pytest.mark.parametrize("time", REPEATS)
def test_who_leaves_while_writing_leaves_no_text(round, at_once, time):
    author = UserFactory()
    annotator = author.annotator
    assignment = assign(annotator=annotator, round=round)

    def act(key):
        if key is None:
            return delete_person(user=author)
        inputs = {"hypothesis": str(key), "label": "neutral"}
        rows = Assignment.objects.select_related("round__task", "context")
        mine = rows.get(pk=assignment.pk)
        with contextlib.suppress(Refused):
            attempt, _ = begin_attempt(annotator=annotator, assignment=mine, key=key, inputs=inputs)
            finish_attempt(attempt=attempt, targets=[], predictions=[])

    at_once(act, [None, *(uuid.uuid4() for _ in range(4))])
    assert Annotator.objects.get(pk=annotator.pk).user_id is None
    purge_deleted()  # what a request stored that had begun before
    assert not texts()
    assert not annotator.attempt_set.exists()


def test_of_an_erased_text_no_vector_stays(round, at_once):
    """Lock: the example, in `store_vectors`, which waits for the end of the erasure."""
    author = UserFactory().annotator
    example = Example.objects.create(
        round=round, context=round.contexts.first(), annotator=author, digest="1",
        inputs={"hypothesis": "One.", "label": "neutral"}, outcome="fooled",
    )  # fmt: skip

    is_erased = threading.Event()

    def act(who):
        if who is None:
            is_erased.wait()
            return store_vectors(encoder="one", vectors={example.pk: b"1"})
        with transaction.atomic():
            erase_examples(annotator=who)
            is_erased.set()
            wait_for(1)

    at_once(act, [author, None])
    assert not TextVector.objects.exists()
