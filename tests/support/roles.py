"""Each role of a hidden task at each of its doors."""

import re

from django.db import transaction

from annotation.models import Example
from core.accounts.services import get_annotator
from tasks.models import Task, TaskMember
from tasks.role_permissions import Permission, find_roles_with_permission
from tests.support.factories import UserFactory
from tests.support.snapshots import compare_with_file
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.discussion.services import add_comment
from validation.judging.blind_services import begin_blind_judging
from validation.models import Validation

ROLES = [role.value for role in TaskMember.Role]
READ = find_roles_with_permission(Permission.READ)
TOLD = "told to readers alone"
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


def blind_owner(world, make_client):
    """A client of another owner of the task, who judges it blindly now."""
    user = UserFactory(email="blind@roles.example.com")
    TaskMember.objects.create(task=world.task, user=user, role="owner")
    begin_blind_judging(task=Task.objects.get(pk=world.task.pk), owner=user)
    client = make_client()
    client.force_login(user)
    return client


def plant(world):
    """Say something of an example that only readers may learn: a reason, a vote and a decision."""
    example = Example.objects.get(uuid=world.ids["examples"][0])
    example.metadata = {"why": TOLD}
    example.save(update_fields=["metadata"])
    voter = get_annotator(UserFactory(email="voter@roles.example.com"))
    Validation.objects.create(example=example, validator=voter, label="neutral", comment=TOLD)
    add_comment(example=example, author=voter, text=TOLD)
    override_consensus(
        example=example, owner=world.owner, choice=Vote(label="neutral"), reason=TOLD
    )


def tells(response):
    """Whether it holds what only readers may learn, or a text that others wrote."""
    parts = response.streaming_content if response.streaming else [response.content]
    said = b"".join(parts).decode(errors="replace")
    return TOLD in said or bool(re.search(r"By \d+: \d", said))


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
    """Assert that the file `known` holds these lines."""
    compare_with_file(known, "\n".join(found) + "\n")
