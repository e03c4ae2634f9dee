"""Each role of a hidden task at each of its doors."""

import os

from django.db import transaction

from tasks.models import Task, TaskMember
from tests.support.factories import UserFactory

ROLES = [role.value for role in TaskMember.Role]
HEAD = " " * 5 + " ".join(f"{role:9}" for role in ROLES)


def refused(role):
    """How somebody is refused: a member by 403; for others nothing is there."""
    return 403 if role else 404


def members_of(world, make_client):
    """A client for each role in the world's task, which is hidden now."""
    Task.objects.update(is_visible=False)
    made = {}
    for role in ROLES:
        user = UserFactory(email=f"{role}@roles.example.com")
        TaskMember.objects.create(task=world.task, user=user, role=role)
        made[role] = make_client()
        made[role].force_login(user)
    return made


def answer(client, method, address):
    """The response to a request with an empty body; what it did is undone."""
    with transaction.atomic():
        response = getattr(client, method.lower())(address, {} if method != "GET" else None)
        transaction.set_rollback(True)
    return response


def line(method, codes, route):
    """A line of a table."""
    return f"{method:4} {' '.join(f'{code:<9}' for code in codes)} {route}"


def check(known, found):
    """Whether the file `known` holds these lines; UPDATE_ACCESS=1 writes them."""
    if os.environ.get("UPDATE_ACCESS"):
        known.write_text("\n".join(found) + "\n")
    assert found == known.read_text().splitlines()
