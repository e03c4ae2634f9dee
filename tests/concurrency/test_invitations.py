"""Many people follow one invitation at the same time."""

import pytest

from core.errors import Refused
from tasks.members import invitation_services
from tasks.members.invitation_services import accept_invitation, create_invitation_link
from tasks.models import TaskMember
from tests.support.factories import TaskFactory, UserFactory
from tests.support.races import races

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_link_is_used_no_more_often_than_it_says(at_once):
    """Lock: the invitation, in `accept_invitation`."""
    task, owner = TaskFactory(code="nli"), UserFactory()
    TaskMember.objects.create(task=task, user=owner, role="owner")

    def join(pair):
        user, key = pair
        try:
            accept_invitation(key=key, user=user)
        except Refused as refused:
            return refused.code
        return "in"

    for _ in races(20):
        made, url = create_invitation_link(task=task, actor=owner, role="judge", most=2, days=1)
        key, people = url.rstrip("/").rsplit("/", 1)[-1], UserFactory.create_batch(6)
        results = at_once(join, [(user, key) for user in people])
        made.refresh_from_db()
        assert (results.count("in"), results.count("gone")) == (2, 4)
        assert made.uses == made.members.count() == 2


def test_a_task_has_no_more_open_invitations_than_it_may(at_once, monkeypatch):
    """Lock: the task, in `send_invitations` and `create_invitation_link`."""
    monkeypatch.setattr(invitation_services, "MAX_OPEN_INVITATIONS", 2)
    task, owner = TaskFactory(code="nli"), UserFactory()
    TaskMember.objects.create(task=task, user=owner, role="owner")

    def make(_number):
        try:
            create_invitation_link(task=task, actor=owner, role="judge", most=2, days=1)
        except Refused as refused:
            return refused.code
        return "made"

    for _ in races(20):
        task.invitations.all().delete()
        results = at_once(make, range(5))
        assert (results.count("made"), results.count("cap")) == (2, 3)
