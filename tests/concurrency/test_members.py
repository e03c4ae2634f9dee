"""Owners change a task's members at the same time."""

import pytest

from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from core.errors import Refused
from tasks.models import BlindJudging, Task, TaskMember
from tasks.services import change_members
from tests.support.factories import TaskFactory, UserFactory
from tests.support.races import races
from validation.judging.blind_services import begin_blind_judging

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = races(20)


def owner(task):
    return TaskMember.objects.create(task=task, user=UserFactory(), role="owner")


@pytest.mark.parametrize("others", [0, 1])
def test_two_owners_cannot_remove_each_other(at_once, others):
    """Lock: the task, in `change_members`. Whoever was removed removes nobody any more."""
    task = TaskFactory(code="nli")
    for _ in range(others):
        owner(task)

    def remove(pair):
        actor, other = pair
        try:
            change_members(task=task, actor=actor.user, removed_members=[other])
        except Refused:
            return 0
        return 1

    for _ in REPEATS:
        LogEntry.objects.all().delete()
        pair = owner(task), owner(task)
        assert sum(at_once(remove, [pair, pair[::-1]])) == 1
        assert task.members.count() == others + 1
        assert LogEntry.objects.filter(action="member.removed").count() == 1
        TaskMember.objects.filter(pk__in=[member.pk for member in pair]).delete()


def test_many_tabs_begin_to_judge_blind_once(at_once):
    """Lock: the member, in `begin_blind_judging`."""
    task = TaskFactory(code="nli")
    for _ in REPEATS:
        owner = UserFactory()
        TaskMember.objects.create(task=task, user=owner, role="owner")
        get_annotator(owner)

        def begin(_tab, task=task, owner=owner):
            return begin_blind_judging(task=Task.objects.get(pk=task.pk), owner=owner).pk

        assert len(set(at_once(begin, range(3)))) == 1
        assert BlindJudging.objects.filter(annotator__user=owner).count() == 1
