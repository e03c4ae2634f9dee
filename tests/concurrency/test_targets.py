"""An editor and an administrator change a target at the same time."""

import pytest

from tasks.models import TargetModel, TaskMember
from tasks.services import TargetRefused, change_target
from tests.factories import TaskFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = range(30)
PLAIN = {"url": "https://good.test/", "secret_env": ""}
TIED = {"url": "https://good.test/", "secret_env": "TARGET_SECRET"}
MOVED = {"url": "https://thief.test/"}


def test_a_secret_never_goes_where_an_editor_says(at_once):
    """Lock: the target, in `change_target`."""
    task = TaskFactory(code="nli")
    editor, boss = UserFactory(), UserFactory(is_superuser=True)
    TaskMember.objects.create(task=task, user=editor, role="editor")
    target = TargetModel.objects.create(task=task, name="mine", **PLAIN)

    def change(asked):
        actor, fields = asked
        try:
            change_target(target=target, actor=actor, fields=fields)
        except TargetRefused:
            assert actor == editor

    for _ in REPEATS:
        TargetModel.objects.update(**PLAIN)
        at_once(change, [(editor, MOVED), (boss, TIED)])
        found = TargetModel.objects.get()
        assert (found.url, found.secret_env) == (TIED["url"], TIED["secret_env"])
