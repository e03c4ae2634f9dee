"""A role waits until its person has confirmed the address that it was given to."""

import pytest
from allauth.account.models import EmailAddress

from dynabench.accounts.models import confirm_address
from dynabench.lib.errors import Refused
from tasks.models import TaskMember
from tasks.permissions import role_of
from tasks.services import change_members
from tests.support.factories import PASSWORD

ADDRESS = "eve@example.com"
MEMBERS = "/api/v1/tasks/nli/members/"


@pytest.fixture
def owner(alice, nli):
    nli.task.is_visible = False
    nli.task.save()
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    return alice


@pytest.fixture
def somebody(client, db):
    """Whoever signed up with the address; nobody has looked into its mails."""
    client.post("/accounts/signup/", {"email": ADDRESS, "password1": PASSWORD})
    return EmailAddress.objects.get(email=ADDRESS, verified=False).user


def add(owner, task, user, role="editor"):
    change_members(task=task, actor=owner, added=[TaskMember(task=task, user=user, role=role)])


@pytest.mark.parametrize("role", TaskMember.Role)
def test_a_role_waits_for_its_address(client, owner, somebody, nli, role):
    add(owner, nli.task, somebody, role)
    somebody.is_staff = True
    somebody.save()
    client.force_login(somebody)
    pages = ["/t/nli/", "/t/nli/write/", "/own/nli/rounds/", "/api/v1/tasks/nli/", MEMBERS]
    assert [client.get(page).status_code for page in pages] == [404] * len(pages)
    assert client.get("/admin/tasks/task/").status_code == 403
    assert "/t/nli/" not in client.get("/").text
    EmailAddress.objects.filter(user=somebody).update(verified=True)
    assert role_of(somebody, nli.task) == role
    assert [client.get(page).status_code for page in pages[:2]] == [200, 200]


def test_another_address_does_not_do(owner, somebody, nli):
    """Who signed up with somebody's address confirms their own, and even makes it the first."""
    add(owner, nli.task, somebody)
    EmailAddress.objects.filter(user=somebody).update(primary=False)
    somebody.email = "mallory@example.com"
    somebody.save()
    confirm_address(somebody)
    assert role_of(somebody, nli.task) is None


def test_owners_see_who_has_to_confirm(client, owner, somebody, nli):
    client.force_login(owner)
    asked = {"email": ADDRESS.upper(), "role": "viewer"}
    made = client.post(MEMBERS, asked, content_type="application/json")
    assert made.json()["counts"] is False
    assert [one["counts"] for one in client.get(MEMBERS).json()["results"]] == [True, False]
    confirm_address(somebody)
    assert [one["counts"] for one in client.get(MEMBERS).json()["results"]] == [True, True]


def test_an_owner_who_waits_is_none(owner, somebody, nli):
    """Else the last owner could leave, and nobody owned the task."""
    add(owner, nli.task, somebody, "owner")
    mine = TaskMember.objects.get(user=owner)
    with pytest.raises(Refused, match="confirmed"):
        change_members(task=nli.task, actor=owner, removed=[mine])
    confirm_address(somebody)
    change_members(task=nli.task, actor=owner, removed=[mine])
    assert role_of(somebody, nli.task) == "owner"
