"""A role waits until its person has confirmed the address that it was given to."""

import pytest
from allauth.account.models import EmailAddress

from core.accounts.models import confirm_address
from core.errors import Refused
from tasks.mails import mail_members
from tasks.models import TaskMember
from tasks.permissions import can_edit, can_own, can_read, can_see, get_role
from tasks.role_permissions import Permission, get_permissions
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
    change_members(
        task=task, actor=owner, added_members=[TaskMember(task=task, user=user, role=role)]
    )


@pytest.mark.parametrize("role", TaskMember.Role)
def test_a_role_waits_for_its_address(client, owner, somebody, nli, role):
    add(owner, nli.task, somebody, role)
    client.force_login(somebody)
    pages = ["/t/nli/", "/t/nli/write/", "/own/nli/rounds/", "/api/v1/tasks/nli/", MEMBERS]
    assert [client.get(page).status_code for page in pages] == [404] * len(pages)
    assert client.get("/admin/tasks/task/", follow=True).status_code == 403
    assert "/t/nli/" not in client.get("/").text
    EmailAddress.objects.filter(user=somebody).update(verified=True)
    assert get_role(somebody, nli.task) == role
    writes = Permission.WRITE in get_permissions(role, is_visible=False)
    statuses = [client.get(page).status_code for page in pages[:2]]
    assert statuses == [200, 200 if writes else 403]


def test_another_address_does_not_do(owner, somebody, nli):
    """Who signed up with somebody's address confirms their own, and even makes it the first."""
    add(owner, nli.task, somebody)
    EmailAddress.objects.filter(user=somebody).update(primary=False)
    somebody.email = "mallory@example.com"
    somebody.save()
    confirm_address(somebody)
    assert get_role(somebody, nli.task) is None


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
        change_members(task=nli.task, actor=owner, removed_members=[mine])
    confirm_address(somebody)
    change_members(task=nli.task, actor=owner, removed_members=[mine])
    assert get_role(somebody, nli.task) == "owner"


def test_a_role_is_asked_once_for_a_request(owner, bob, nli, django_assert_num_queries):
    with django_assert_num_queries(2):
        assert [can_edit(owner, nli.task), can_own(owner, nli.task)] == [True, True]
        assert [can_read(bob, nli.task), can_see(bob, nli.task)] == [False, False]


def test_a_role_that_was_lost_meanwhile_names_no_members(owner, bob, nli):
    assert can_own(owner, nli.task)
    TaskMember.objects.update(role="viewer")
    with pytest.raises(Refused) as refused:
        add(owner, nli.task, bob)
    assert refused.value.code == "members"


def test_nobody_is_mailed_for_a_role_that_waits(
    owner, somebody, nli, mailoutbox, django_capture_on_commit_callbacks
):
    add(owner, nli.task, somebody)
    for told in (["alice@example.com"], ["alice@example.com", ADDRESS]):
        mailoutbox.clear()
        with django_capture_on_commit_callbacks(execute=True):
            mail_members(nli.task, ["owner", "editor"], lambda: ("Fails", "See there."))
        assert sorted(one.to[0] for one in mailoutbox) == told
        confirm_address(somebody)
