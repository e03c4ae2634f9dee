"""Invitations to a task: by mail and by link, signed up or in, once, until they end."""

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from core.accounts.models import LogEntry, User
from core.errors import Invalid, Refused
from tasks.mails import normalise_addresses
from tasks.members import invitation_services as services
from tasks.models import Invitation, Task, TaskMember
from tests.support.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db
URL = "/own/nli/access/invitations/"
CARLA = "carla@example.com"


@pytest.fixture
def owner(as_alice, alice, nli):
    """Alice's client; her task is hidden."""
    Task.objects.update(is_visible=False)
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    return as_alice


@pytest.fixture
def mailed(owner, django_capture_on_commit_callbacks):
    """Invites addresses; gives the path of each link that was mailed."""

    def invite(*addresses, role="annotator"):
        told = {"mail": "1", "addresses": "\n".join(addresses), "role": role, "days": 7}
        with django_capture_on_commit_callbacks(execute=True):
            assert owner.post(URL, told).status_code == 302
        return [re.search(r"/join/\S+", one.body)[0] for one in mail.outbox[-len(addresses) :]]

    return invite


def link(client, **more):
    """The answer to the form of a link, and the path in it."""
    told = {"link": "1", "role": "writer", "most": 2, "days": 7, **more}
    page = client.post(URL, told)
    found = re.search(r"/join/[\w-]+/", page.text)
    return page, found and found[0]


def signed_in(user):
    client = Client()
    client.force_login(user)
    return client


def test_invitations_by_mail_are_offered_where_mail_is_sent(owner, settings):
    assert 'name="mail"' in owner.get(URL).text
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert 'name="mail"' not in owner.get(URL).text


def test_the_form_of_a_link_asks_for_no_more_people_than_may_join(owner, settings, nli):
    settings.NEW_TASKS = "approval"
    Task.objects.update(is_unapproved=True)
    for left in (19, 1):
        form = owner.get(URL).context["link"]
        assert form["most"].initial == left
        assert link(owner, most=form["most"].initial - (left > 1))[1]
    assert owner.get(URL).context["link"]["most"].initial == 1
    assert not link(owner, most=1)[1]
    settings.NEW_TASKS = "everybody"
    assert owner.get(URL).context["link"]["most"].initial == 20


def test_who_is_mailed_signs_up_and_lands_on_the_task(mailed, owner, nli, settings):
    client = Client()
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    (path,) = mailed(CARLA.upper())
    assert [one.to for one in mail.outbox] == [[CARLA]]
    (task_owner,) = nli.task.members.select_related("user__annotator")
    assert str(task_owner.user.annotator) in mail.outbox[0].body
    assert task_owner.user.email not in mail.outbox[0].body
    assert path.split("/")[2] not in str(Invitation.objects.values_list())  # hashed
    page = client.get(path)
    assert f"?next={path}" in page.text
    client.post(f"/accounts/signup/?next={path}", {"email": CARLA, "password1": PASSWORD})
    confirm = re.search(r"/accounts/confirm-email/\S+", mail.outbox[-1].body)[0]
    client.post(confirm)
    response = client.post("/accounts/login/", {"login": CARLA, "password": PASSWORD})
    assert response.url == path  # though the form named no page
    assert client.get("/t/nli/").status_code == 404
    assert client.post(path).url == "/t/nli/"
    assert client.get("/t/nli/write/").status_code == 200
    member = TaskMember.objects.get(user__email=CARLA)
    assert (member.role, member.invitation) == ("annotator", Invitation.objects.get())
    assert CARLA in owner.get(URL).text
    entry = LogEntry.objects.get(action="member.joined")
    assert (entry.actor, entry.target) == (member.user, "nli")


def test_a_link_works_for_so_many_and_shows_who_came(owner, nli, bob):
    page, path = link(owner)
    assert page.status_code == 200
    assert path not in owner.get(URL).text
    people = [bob, *UserFactory.create_batch(2)]
    answers = [signed_in(user).post(path) for user in people]
    assert [one.status_code for one in answers] == [302, 302, 410]
    rows = owner.get(URL).context["rows"]
    assert [one.user for one in rows[0].members.order_by("pk")] == people[:2]
    assert rows[0].state == "used"
    assert nli.task.members.filter(role="writer").count() == 2


def test_a_member_keeps_the_role_and_uses_nothing_up(owner, alice, mailed, bob):
    (path,) = mailed("somebody@example.com", role="viewer")
    assert owner.post(path).url == "/t/nli/"
    assert TaskMember.objects.get(user=alice).role == "owner"
    waiting = TaskMember.objects.create(
        task=Task.objects.get(), user=bob, role="judge", address="not-confirmed@example.com"
    )
    assert signed_in(bob).post(path).url == "/t/nli/"  # whose role waited is let in
    waiting.refresh_from_db()
    assert (waiting.role, waiting.address) == ("viewer", "")
    assert Invitation.objects.get().uses == 1


def test_what_is_over_lets_nobody_in_and_tells_nothing(owner, mailed, bob, nli):
    paths = {"again": mailed(CARLA)[0], "open": mailed(CARLA)[0], "ended": link(owner)[1]}
    paths |= {"revoked": link(owner)[1], "none": "/join/nothing/"}
    revoked, ended, *_ = Invitation.objects.all()
    Invitation.objects.filter(pk=ended.pk).update(ends_at=timezone.now())
    assert owner.post(f"{URL}{revoked.pk}/revoke/").status_code == 302
    for name, path in paths.items():
        page = Client().get(path)
        assert page.status_code == (200 if name == "open" else 410), name
        assert (nli.task.name in page.text.partition("<footer")[0]) == (name == "open"), name
        posted = signed_in(bob).post(path).status_code
        assert posted == (302 if name == "open" else 410), name
    assert [one.state for one in Invitation.objects.all()] == [
        "revoked",
        "ended",
        "used",
        "revoked",
    ]
    services.revoke_invitation(invitation=ended, actor=User.objects.get(email="alice@example.com"))
    assert LogEntry.objects.filter(action="invitation.revoked").count() == 1


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"mail": "1", "addresses": "carla", "role": "judge", "days": 1}, "addresses"),
        ({"mail": "1", "addresses": "alice@example.com", "role": "judge", "days": 1}, "addresses"),
        ({"mail": "1", "addresses": f"{CARLA} " * 31, "role": "judge", "days": 1}, "addresses"),
        ({"mail": "1", "addresses": CARLA, "role": "boss", "days": 1}, "role"),
        ({"mail": "1", "addresses": CARLA, "role": "judge", "days": 91}, "days"),
        ({"link": "1", "role": "owner", "most": 1, "days": 1}, "role"),
        ({"link": "1", "role": "judge", "most": 0, "days": 1}, "most"),
    ],
)
def test_odd_forms(owner, told, field):
    page = owner.post(URL, told)
    assert page.status_code == 422
    assert [*page.context["mail" if "mail" in told else "link"].errors] == [field]
    assert not Invitation.objects.exists()
    assert not mail.outbox


def test_the_services_refuse_by_themselves(owner, alice, bob, nli, monkeypatch):
    told = {"task": nli.task, "days": 1}
    for role, most in (("owner", 1), ("judge", 0), ("judge", 1001)):
        with pytest.raises(Invalid):
            services.create_invitation_link(**told, actor=alice, role=role, most=most)
    made, _url = services.create_invitation_link(**told, actor=alice, role="judge", most=1)
    with pytest.raises(Refused):
        services.create_invitation_link(**told, actor=bob, role="judge", most=1)
    with pytest.raises(Refused):
        services.revoke_invitation(invitation=made, actor=bob)
    monkeypatch.setattr(services, "MAX_OPEN_INVITATIONS", 2)
    with pytest.raises(Refused):
        services.send_invitations(
            **told, actor=alice, role="judge", addresses=[CARLA, "d@example.com"]
        )
    assert Invitation.objects.get() == made


def test_many_an_hour_are_refused(owner, monkeypatch):
    monkeypatch.setattr("core.web.throttles.REQUESTS_PER_HOUR", {"members": 1, "joining": 1})
    told = {"mail": "1", "role": "judge", "days": 1, "addresses": f"{CARLA}, d@example.com"}
    assert owner.post(URL, told).status_code == 422
    assert [Client().get("/join/nothing/").status_code for _ in range(2)] == [410, 429]


def test_what_is_over_for_a_month_goes_and_members_stay(owner, bob, nli):
    _page, path = link(owner)
    signed_in(bob).post(path)
    link(owner)
    old = Invitation.objects.last()
    Invitation.objects.filter(pk=old.pk).update(ends_at=timezone.now() - timedelta(days=31))
    assert services.tidy_invitations(10) == 1
    assert Invitation.objects.count() == 1
    assert nli.task.members.get(user=bob).invitation is None


def test_an_address_is_invited_once_however_it_is_typed():
    typed = [" B@x.example", "a@x.example", "b@X.example "]
    assert normalise_addresses(typed) == ["b@x.example", "a@x.example"]
