"""Members in the API: read by members, named by owners, and never without an owner."""

import pytest

from core.accounts.models import LogEntry, confirm_address
from tasks.models import TaskMember
from tests.support.factories import TaskFactory, UserFactory
from tests.support.roles import refused

URL = "/api/v1/tasks/nli/members/"


@pytest.fixture
def owner(api, alice, nli):
    """Alice's client, and her row."""
    return api, TaskMember.objects.create(task=nli.task, user=alice, role="owner")


def member(task, email, role):
    return TaskMember.objects.create(task=task, user=UserFactory(email=email), role=role)


def told(pk, email, role, counts=True):
    name = str(TaskMember.objects.get(pk=pk).user.annotator)
    return {"id": pk, "name": name, "email": email, "role": role, "counts": counts}


@pytest.mark.parametrize("role", ["owner", "editor", None])
def test_who_may_read_and_change_them(api, alice, bob, nli, role):
    there = member(nli.task, "there@example.com", "owner")
    if role:
        TaskMember.objects.create(task=nli.task, user=alice, role=role)
    may = role == "owner"
    assert api.get(URL).status_code == (200 if role else 404)
    asked = {"email": "bob@example.com", "role": "viewer"}
    assert api.post(URL, asked).status_code == (201 if may else refused(role))
    assert api.patch(f"{URL}{there.pk}/", {"role": "editor"}).status_code == (
        200 if may else refused(role)
    )
    assert api.delete(f"{URL}{there.pk}/").status_code == (204 if may else refused(role))
    assert nli.task.members.filter(user=bob).exists() == may
    assert nli.task.members.filter(pk=there.pk, role="owner").exists() != may


def test_without_an_account_nobody_learns_an_address(anybody, nli):
    member(nli.task, "there@example.com", "owner")
    assert anybody.get(URL).status_code == 401
    for address in ("", "targets/", "rounds/"):
        assert "example.com" not in anybody.get(f"/api/v1/tasks/nli/{address}").text


def test_members_are_read_page_by_page(owner, nli):
    api, mine = owner
    other = member(nli.task, "other@example.com", "viewer")
    first = api.get(URL, {"page_size": 1}).json()
    assert first["results"] == [told(mine.pk, "alice@example.com", "owner")]
    assert api.get(first["next"]).json()["results"] == [
        told(other.pk, "other@example.com", "viewer")
    ]


def test_a_member_is_added_changed_and_removed_with_a_log(owner, alice, bob, nli):
    api, _ = owner
    confirm_address(bob)
    said = api.post(URL, {"email": "BOB@example.com", "role": "viewer"}).json()
    made = TaskMember.objects.get(user=bob)
    assert said == told(made.pk, "bob@example.com", "viewer")
    said = api.patch(f"{URL}{made.pk}/", {"role": "editor"}).json()
    assert said == told(made.pk, "bob@example.com", "editor")
    assert api.delete(f"{URL}{made.pk}/").status_code == 204
    assert not nli.task.members.filter(user=bob).exists()
    entries = LogEntry.objects.filter(action__startswith="member.").order_by("pk")
    about = {"user": "bob@example.com", "person": bob.pk}
    assert [(one.action, one.actor, one.target, one.data) for one in entries] == [
        ("member.added", alice, "nli", {**about, "role": "viewer"}),
        ("member.changed", alice, "nli", {**about, "role": "editor"}),
        ("member.removed", alice, "nli", {**about, "role": "editor"}),
    ]


def test_who_has_no_account_or_a_role_already_is_refused(owner, bob, nli):
    api, _ = owner
    UserFactory(email="off@example.com", is_active=False)
    for email in ("nobody@example.com", "off@example.com"):
        response = api.post(URL, {"email": email, "role": "viewer"})
        assert response.status_code == 422
        assert response.json()["error"]["fields"].keys() == {"email"}
    asked = {"email": "bob@example.com", "role": "viewer"}
    assert api.post(URL, asked).status_code == 201
    response = api.post(URL, {**asked, "role": "owner"})
    assert (response.status_code, response.json()["error"]["code"]) == (409, "members")
    assert nli.task.members.get(user=bob).role == "viewer"


def test_the_last_owner_stays_but_for_superusers(owner, alice, nli):
    api, mine = owner
    member(nli.task, "other@example.com", "editor")
    url = f"{URL}{mine.pk}/"
    for response in (api.delete(url), api.patch(url, {"role": "viewer"})):
        assert (response.status_code, response.json()["error"]["code"]) == (409, "members")
    assert nli.task.members.get(user=alice).role == "owner"
    assert not LogEntry.objects.filter(action__startswith="member.").exists()
    alice.is_superuser = True
    alice.save(update_fields=["is_superuser"])
    assert api.delete(url).status_code == 204
    assert not nli.task.members.filter(role="owner").exists()


def test_an_owner_may_go_when_another_stays(owner, alice, nli):
    api, mine = owner
    member(nli.task, "other@example.com", "owner")
    assert api.delete(f"{URL}{mine.pk}/").status_code == 204
    assert api.get(URL).status_code == 404


def test_another_tasks_member_is_not_there(owner, alice, nli):
    api, _ = owner
    other = TaskFactory(code="other", config_text=nli.task.config_text)
    TaskMember.objects.create(task=other, user=alice, role="owner")
    theirs = member(other, "theirs@example.com", "editor")
    for pk in (theirs.pk, 2**63, 10**30):
        assert api.patch(f"{URL}{pk}/", {"role": "owner"}).status_code == 404
        assert api.delete(f"{URL}{pk}/").status_code == 404
    assert other.members.get(pk=theirs.pk).role == "editor"


@pytest.mark.parametrize(
    ("body", "field"),
    [({"role": "viewer"}, "email"), ({"email": "bob@example.com"}, "role"),
     ({"email": "bob@example.com", "role": "boss"}, "role"),
     ({"email": "bob", "role": "viewer"}, "email"),
     ({"email": "b\0b@example.com", "role": "viewer"}, "email"),
     ({"email": ["bob@example.com"], "role": "viewer"}, "email"), ([], "")],
)  # fmt: skip
def test_odd_bodies(owner, bob, nli, body, field):
    api, mine = owner
    response = api.post(URL, body)
    assert response.status_code == 422
    assert set(response.json()["error"]["fields"]) == {field}
    assert api.patch(f"{URL}{mine.pk}/", {}).status_code == 422
    assert nli.task.members.count() == 1


def test_a_key_adds_one_member(owner, bob, nli):
    api, _ = owner
    asked = {"email": "bob@example.com", "role": "viewer"}
    for _ in range(2):
        assert api.post(URL, asked, HTTP_IDEMPOTENCY_KEY="k").status_code == 201
    assert nli.task.members.count() == 2
