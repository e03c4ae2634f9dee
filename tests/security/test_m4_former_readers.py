"""Whoever read a task's labels in a role judges none of these examples when the role has ended.

A viewer read the export, their role was taken away, and the queue gave them the same examples.
"""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotation.models import ShownExample
from core.accounts.services import get_annotator
from core.accounts.tokens import hash_key
from tasks.members.invitation_services import accept_invitation
from tasks.models import Invitation, TaskMember
from tasks.services import set_role
from tests.support.factories import UserFactory
from tests.support.judging import write
from validation.judging.services import lease_next

pytestmark = pytest.mark.django_db
READING = ["owner", "editor", "reviewer", "viewer"]


@pytest.fixture
def reader(nli, alice, bob):
    """A person who had a role while two examples were there; the second owner keeps the task."""
    set_role(task=nli.task, user=UserFactory(), role="owner")
    write(nli, bob, 1)
    write(nli, bob, 2)
    return alice


def handed_out(person, task):
    return lease_next(validator=get_annotator(person), task=task)


@pytest.mark.parametrize("former", READING)
@pytest.mark.parametrize("role", [None, "judge", "annotator"])
def test_they_judge_only_what_comes_afterwards(nli, bob, reader, former, role):
    task = nli.task
    get_annotator(reader)
    set_role(task=task, user=reader, role=former)
    set_role(task=task, user=reader, role=role)
    assert handed_out(reader, task) is None
    later = write(nli, bob, 3)
    assert handed_out(reader, task).example == later
    assert handed_out(UserFactory(), task) is not None  # others judge all of it


def test_their_own_examples_were_shown_to_nobody(nli, reader):
    own = write(nli, reader, 4)
    set_role(task=nli.task, user=reader, role="viewer")
    set_role(task=nli.task, user=reader, role=None)
    shown = ShownExample.objects.filter(annotator=get_annotator(reader))
    assert (shown.count(), shown.filter(example=own).exists()) == (2, False)
    assert {*shown.values_list("way", flat=True)} == {"role"}


@pytest.mark.parametrize("role", ["judge", "writer", "annotator"])
def test_roles_that_read_nothing_leave_nothing(nli, reader, role):
    get_annotator(reader)
    set_role(task=nli.task, user=reader, role=role)
    set_role(task=nli.task, user=reader, role=None)
    assert not ShownExample.objects.exists()
    assert handed_out(reader, nli.task) is not None


def test_another_reading_role_is_no_end(nli, reader):
    get_annotator(reader)
    set_role(task=nli.task, user=reader, role="viewer")
    set_role(task=nli.task, user=reader, role="reviewer")
    assert not ShownExample.objects.exists()


def test_an_invitation_takes_nobody_back_to_judging(nli, reader):
    """A role that does not count, because its address is gone, gives way to that of a link."""
    get_annotator(reader)
    set_role(task=nli.task, user=reader, role="viewer")
    TaskMember.objects.filter(user=reader).update(address="gone@example.com")
    key = "a-key-of-some-letters"
    ends_at = timezone.now() + timedelta(days=1)
    Invitation.objects.create(task=nli.task, role="judge", digest=hash_key(key), ends_at=ends_at)
    accept_invitation(key=key, user=reader)
    assert handed_out(reader, nli.task) is None
