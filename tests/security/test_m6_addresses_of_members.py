"""E-mail addresses of members are read by owners of the task alone, at every door."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re

import pytest
from django.test import Client
from django.urls import reverse

from core.accounts.models import PANEL_ADDRESS_ENDING, Annotator, User
from core.accounts.people import get_account_address, get_member_label
from core.accounts.services import get_annotator, log
from evaluation.submissions.teams.services import accept_invitation, invite_member, make_team
from tasks.members.assignments.services import set_assignments
from tasks.models import ConfigVersion, TaskMember
from tests.support.api_routes import address_of as api_address
from tests.support.api_routes import (
    routes,
    world,  # noqa: F401
)
from tests.support.factories import UserFactory
from tests.support.page_routes import address_of as page_address
from tests.support.page_routes import routes as page_routes
from tests.support.page_routes import with_pages
from tests.support.roles import ROLES, answer, members_of, plant

pytestmark = pytest.mark.django_db
ADMIN = (
    *("tasks_task", "tasks_contextbatch", "tasks_targetmodel", "accounts_logentry"),
    *("validation_ownerdecision", "accounts_annotator"),
)


def addresses_in(response, own):
    """Addresses of people of the task that the response tells, besides the reader's own."""
    parts = response.streaming_content if response.streaming else [response.content]
    said = b"".join(parts).decode(errors="replace")
    return set(re.findall(r"[\w.+-]+@(?:roles\.)?example\.com", said)) - {own}


def doors(world):
    """Everything that is read of a task: pages, operations and the admin."""
    paged = with_pages(world)
    for method, route in routes():
        if method == "GET" and re.match(r"(tasks|examples|reports|teams|webhooks)/", route):
            yield api_address(world, route)
    for route in page_routes():
        if "places/" not in route and "payments/" not in route:
            yield page_address(paged, route)
    for model in ADMIN:
        yield reverse(f"admin:{model}_changelist")
    yield reverse("admin:tasks_task_change", args=[world.task.pk])


def test_nobody_below_owner_reads_an_address(world):
    plant(world)
    members = members_of(world, Client)
    for role in ROLES:
        user = User.objects.get(email=f"{role}@roles.example.com")
        log(user, "round.looked", world.task, user=user.email)
        log(user, "policy.set", world.task.rounds.first())
    writer = User.objects.get(email="writer@roles.example.com")
    set_assignments(
        task=world.task, actor=world.owner, kind="write", people=[writer], amount=3, share=None,
        overlap=1, due_on=None, round=None,
    )  # fmt: skip
    ConfigVersion.objects.create(task=world.task, number=99, text="x", actor=world.owner)
    told, read_by_owner = {}, set()
    for door in doors(world):
        for role in ROLES:
            found = addresses_in(answer(members[role], "GET", door), f"{role}@roles.example.com")
            if role == "owner":
                read_by_owner |= found
            elif found:
                told[door, role] = found
    assert not told
    assert read_by_owner >= {f"{role}@roles.example.com" for role in ROLES[1:]}


def test_members_of_a_team_do_not_read_each_others_address(client):
    owner, member = UserFactory(email="owner@example.com"), UserFactory(email="a@example.com")
    team = make_team(actor=owner, name="Us")
    accept_invitation(
        invitation=invite_member(team=team, actor=owner, email=member.email), user=member
    )
    invite_member(team=team, actor=owner, email="invited@example.com")
    for user, others in (
        (owner, {"a@example.com", "invited@example.com"}),
        (member, set()),
    ):
        client.force_login(user)
        for door in ("/me/teams/", f"/me/teams/{team.pk}/", "/api/v1/teams/"):
            found = addresses_in(client.get(door), user.email)
            assert found == (set() if door == "/me/teams/" else others), (door, user)


def test_an_editor_names_members_by_pseudonym(api_of_editor, nli):
    door = "/api/v1/tasks/nli/duties/"
    asked = {"kind": "write", "amount": 2}
    there = UserFactory(email="there@example.com")
    TaskMember.objects.create(task=nli.task, user=there, role="writer")
    assert post(api_of_editor, door, asked | {"emails": [there.email]}).status_code == 422
    assert post(api_of_editor, door, asked | {"names": ["w-nobody"]}).status_code == 422
    made = post(api_of_editor, door, asked | {"names": [str(there.annotator)]})
    assert made.status_code == 201
    assert (made.json()[0]["name"], made.json()[0]["email"]) == (str(there.annotator), None)


def test_made_up_addresses_of_panels_are_shown_to_nobody():
    person = User.objects.create_user(f"0123abcd{PANEL_ADDRESS_ENDING}")
    assert get_account_address(person, is_owner=True) is None
    assert get_member_label(person, is_owner=True) not in ("", person.email)
    name = str(get_annotator(person))
    assert Annotator.objects.get(user=person).pseudonym == name
    assert get_member_label(User.objects.get(pk=person.pk), is_owner=True) == name
    assert get_member_label(None, is_owner=True) == get_member_label(None, is_owner=False) != ""


@pytest.fixture
def api_of_editor(client, nli):
    editor = UserFactory(email="editor@example.com")
    TaskMember.objects.create(task=nli.task, user=editor, role="editor")
    client.force_login(editor)
    return client


def post(client, door, body):
    return client.post(door, body, "application/json")
