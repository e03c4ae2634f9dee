"""Each lock of assignments, with the race that it prevents. Without the lock its test fails."""

# ruff: noqa: F811  (fixtures are named where they are used)

import contextlib

import pytest
from django.db.models import F
from django.utils import timezone

from annotation.models import Example
from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from core.errors import Refused
from tasks.members.assignments.services import set_assignments
from tasks.models import Duty, TaskMember
from tests.support.factories import UserFactory
from tests.support.races import races
from tests.support.racing_votes import examples, round  # noqa: F401
from validation.consensus.consensus import Vote
from validation.judging.services import cast_validation, lease_next
from validation.models import JudgeLease, QueueItem, RoundPolicy, Validation

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)
NEUTRAL = Vote(label="neutral")


@pytest.fixture
def owner(round):
    user = UserFactory()
    TaskMember.objects.create(task=round.task, user=user, role="owner")
    return user


def judges(round, count):
    people = [UserFactory() for _ in range(count)]
    for one in people:
        TaskMember.objects.create(task=round.task, user=one, role="judge")
    return people


def ask(round, owner, people, **what):
    return set_assignments(task=round.task, actor=owner, kind="judge", people=people, **what)


def test_one_person_in_many_tabs_is_given_no_more_than_a_number(round, owner, at_once):
    """Lock: the annotator, in `lease_next` and in a vote whose time ran out."""
    author = Annotator.objects.create(pseudonym="w-1")
    examples(round, [author], 60)
    for _ in REPEATS:
        (user,) = judges(round, 1)
        me = get_annotator(user)
        ask(round, owner, [user], amount=2)

        def judge(_, me=me):
            for _n in range(3):
                if lease := lease_next(validator=me, task=round.task):
                    JudgeLease.objects.filter(pk=lease.pk).update(until=F("leased_at"))
                    with contextlib.suppress(Refused):
                        cast_validation(validator=me, example=lease.example, vote=NEUTRAL)

        at_once(judge, range(6))
        assert Validation.objects.filter(validator=me).count() == 2


def test_strangers_at_once_take_no_place_that_is_kept(round, owner, at_once):
    """Lock: the item of the queue, and another look under it, in `lease_next`.

    An example needs three votes, of which two are kept. All have judged its author, whom they avoid
    as long as there is another, so they wait for each other.
    """
    now = timezone.now()
    author = Annotator.objects.create(pseudonym="w-1")
    ask(round, owner, judges(round, 2), overlap=2)
    strangers = [get_annotator(UserFactory()) for _ in range(6)]
    for _ in REPEATS:
        before, _example = examples(round, [author], 2)
        Example.objects.filter(pk=before.pk).update(retracted_at=now)
        for one in strangers:
            times = {"leased_at": now, "until": now, "takes_place": False}
            JudgeLease.objects.create(example=before, validator=one, **times)
        leases = at_once(lambda one: lease_next(validator=one, task=round.task), strangers)
        assert sum(lease is not None for lease in leases) == 1
        assert QueueItem.objects.get().free == 2
        for table in (RoundPolicy, Example):
            table.objects.all().delete()


def test_two_editors_share_out_no_more_than_all(round, owner, at_once):
    """Lock: the task, in `set_assignments`."""
    for _ in REPEATS:
        people = judges(round, 4)

        def share(user):
            with contextlib.suppress(Refused):
                ask(round, owner, [user], share=0.6)

        at_once(share, people)
        assert Duty.objects.select_current().count() == 1
        Duty.objects.all().delete()
