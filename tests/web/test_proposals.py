"""A new task is private until it is approved: who asks, who decides, what opens and is told."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
from contextlib import suppress

import pytest
from django.test import Client

from core.accounts.models import LogEntry, confirm_address
from core.errors import Refused
from dynabench.communities.models import Community, CommunityProposal
from dynabench.communities.services import ask_to_join
from evaluation.models import CustomMetric
from tasks.making.proposal_services import request_approval
from tasks.members.invitation_services import (
    accept_invitation,
    create_invitation_link,
    send_invitations,
)
from tasks.models import Task, TaskMember, TaskProposal
from tasks.permissions import MAX_COLLEAGUES
from tasks.rounds.states import set_round_state
from tasks.services import change_members, change_task
from tests.support.campaigns import open_campaign
from tests.support.factories import ContextFactory, UserFactory
from tests.support.new_tasks import NEW, ada, as_ada  # noqa: F401
from tests.support.writing import signed_in

OWN = "/own/names/"
FORM = {"goal": "To find names.", "people": "My class.", "show": "on"}
YES = {"approve": "yes", "reason": "Go ahead."}
NO = {"approve": "no", "reason": "We have one."}


@pytest.fixture(autouse=True)
def _approval(settings):
    settings.NEW_TASKS = "approval"


@pytest.fixture
def boss(db):
    return UserFactory(email="boss@example.com", is_superuser=True)


@pytest.fixture
def as_boss(boss):
    return signed_in(boss)


@pytest.fixture
def task(boss, as_ada):
    assert as_ada.post(NEW, {"name": "Names", "code": "names"}).url == OWN
    return Task.objects.get()


@pytest.fixture
def asked(task, as_ada, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        assert as_ada.post(f"{OWN}access/approval/", FORM).url == f"{OWN}access/"
    return TaskProposal.objects.get()


@pytest.fixture
def decide(as_boss, django_capture_on_commit_callbacks):
    def decide(proposal, form, client=as_boss):
        with django_capture_on_commit_callbacks(execute=True):
            return client.post(f"/new/proposals/{proposal.pk}/", form)

    return decide


def test_a_new_task_is_set_up_and_tried_before_anybody_approved_it(task, ada, as_ada, bob):
    assert (task.is_visible, task.is_unapproved, task.made_by) == (False, True, ada)
    confirm_address(bob)
    added = TaskMember(task=task, user=bob, role="annotator")
    change_members(task=task, actor=ada, added_members=[added])
    ContextFactory(round=task.rounds.get(), fields={})
    set_round_state(round=task.rounds.get(), state="open", actor=ada)
    for path in ("/t/names/", "/t/names/write/", "/t/names/try/"):
        assert signed_in(bob).get(path).status_code == 200, path
    page = as_ada.get(OWN)
    assert page.context["unapproved"]
    assert not page.context["approval"]


PUBLIC = ("", "write/", "judge/", "data/", "leaderboard/", "try/", "people/")


@pytest.mark.parametrize("state", ["new", "waiting", "declined"])
def test_what_is_not_approved_is_found_nowhere(task, as_ada, decide, nli, bob, state):
    change_task(task=nli.task, actor=UserFactory(is_superuser=True), fields={"is_visible": True})
    if state != "new":
        as_ada.post(f"{OWN}access/approval/", FORM)
    if state == "declined":
        decide(TaskProposal.objects.get(), NO)
    stranger = signed_in(bob)
    for client in (stranger, Client()):
        for path in PUBLIC:
            assert client.get(f"/t/names/{path}").status_code in (302, 404), path
        assert "/t/names/" not in client.get("/").text
        for path in ("tasks/", "tasks/?search=names"):
            listed = client.get(f"/api/v1/{path}").json()["results"]
            assert "names" not in [one["code"] for one in listed]
        assert client.get("/api/v1/tasks/names/").status_code == 404


def test_no_door_shows_it_or_recruits_people(task, ada, as_ada, boss):
    as_ada.post(f"{OWN}access/", {"is_visible": "on", "allow_try_out": "on"})
    as_ada.patch("/api/v1/tasks/names/", {"is_visible": True}, content_type="application/json")
    text = {"config_text": task.config_text, "code": "other", "is_visible": True}
    assert as_ada.post("/api/v1/tasks/", text, content_type="application/json").status_code != 201
    admin = f"/admin/tasks/task/{task.pk}/change/"
    page = as_ada.get(admin).context["adminform"].form
    sent = {
        **page.initial,
        "is_visible": "on",
        "members-TOTAL_FORMS": 0,
        "members-INITIAL_FORMS": 0,
    }
    as_ada.post(admin, {key: value for key, value in sent.items() if value is not None})
    with pytest.raises(Refused, match="approval"):
        change_task(task=task, actor=ada, fields={"is_visible": True})
    community = Community.objects.create(slug="words", name="Words", is_listed=True)
    with pytest.raises(Refused, match="approval"):
        ask_to_join(community=community, task=task, actor=ada)
    campaign = open_campaign(task, state="draft", ethics="Reviewed.")
    to_open = {"to": "open", "ethics_name": "Ada"}
    as_ada.post(f"{OWN}campaigns/{campaign.slug}/state/", to_open)
    campaign.refresh_from_db()
    assert campaign.state == "draft"
    assert not Task.objects.filter(is_visible=True).exists()
    assert Task.objects.count() == 1


def test_few_colleagues_join_before_it_is_approved(task, ada, settings):
    addresses = [f"c{number}@example.com" for number in range(MAX_COLLEAGUES - 3)]
    about = {"task": task, "actor": ada, "role": "annotator", "days": 3}
    send_invitations(addresses=addresses, **about)
    with pytest.raises(Refused):
        create_invitation_link(most=3, **about)
    _made, url = create_invitation_link(most=1, **about)
    accept_invitation(key=url.rsplit("/", 2)[-2], user=UserFactory())
    change_members(
        task=task,
        actor=ada,
        added_members=[TaskMember(task=task, user=UserFactory(), role="judge")],
    )
    for more in (
        lambda: send_invitations(addresses=["late@example.com"], **about),
        lambda: change_members(
            task=task,
            actor=ada,
            added_members=[TaskMember(task=task, user=UserFactory(), role="judge")],
        ),
    ):
        with pytest.raises(Refused):
            more()
    settings.NEW_TASKS = "everybody"
    create_invitation_link(most=100, **about)


def test_a_request_waits_where_owners_and_administrators_see_it(
    asked, task, as_ada, as_boss, mailoutbox
):
    assert (asked.task, asked.state, asked.show) == (task, "waiting", True)
    assert [mail.to for mail in mailoutbox] == [["boss@example.com"]]
    assert f"/new/proposals/{asked.pk}/" in mailoutbox[0].body
    for path in (OWN, f"{OWN}access/"):
        assert as_ada.get(path).context["approval"] == asked
    with suppress(Refused):
        request_approval(task=task, actor=asked.proposer, goal="x", people="y")
        raise AssertionError("it waits already")
    CommunityProposal.objects.create(proposer=asked.proposer, name="B", slug="b", goal="x")
    metric = CustomMetric.objects.create(task=task, name="m", number=1)
    for path in ("/", "/admin/"):
        assert 'href="/new/proposals/"' in as_boss.get(path).text
        assert 'href="/new/proposals/"' not in as_ada.get(path).text
    assert as_boss.get("/").context["waiting"] == 3
    told = as_boss.get("/new/proposals/").context
    assert [*told["proposals"]] == [asked]
    assert [one.slug for one in told["communities"]] == ["b"]
    assert [*told["metrics"]] == [metric]
    assert "My class." in as_boss.get(f"/new/proposals/{asked.pk}/").text


@pytest.mark.parametrize("show", [True, False])
def test_approval_opens_the_task(asked, task, as_ada, decide, mailoutbox, show):
    TaskProposal.objects.update(show=show)
    assert decide(asked, YES).status_code == 302
    task.refresh_from_db()
    asked.refresh_from_db()
    assert (task.is_unapproved, task.is_visible, asked.state) == (False, show, "approved")
    assert Client().get("/t/names/").status_code == (200 if show else 404)
    assert mailoutbox[-1].to == ["ada@example.com"]
    assert "Go ahead." in mailoutbox[-1].body
    assert "unapproved" not in as_ada.get(OWN).context
    assert LogEntry.objects.filter(action="proposal.approved", task="names").exists()
    assert decide(asked, YES).status_code == 422
    open_task = as_ada.post(f"{OWN}access/", {"is_visible": "on"})
    assert open_task.status_code == 302


def test_what_was_declined_is_asked_again(asked, task, as_ada, decide, mailoutbox):
    refused = decide(asked, {**NO, "reason": ""})
    assert [*refused.context["form"].errors] == ["reason"]
    assert decide(asked, NO).status_code == 302
    task.refresh_from_db()
    assert (task.is_unapproved, task.is_visible) == (True, False)
    assert "We have one." in mailoutbox[-1].body
    assert "We have one." in as_ada.get(f"{OWN}access/").text
    as_ada.post(f"{OWN}access/approval/", {**FORM, "goal": "Another."})
    again = TaskProposal.objects.get()
    assert (again.state, again.goal, again.reason) == ("waiting", "Another.", "")


def test_who_may_show_it_ends_the_waiting(asked, task, ada, boss, settings):
    change_task(task=task, actor=boss, fields={"is_visible": True})
    asked.refresh_from_db()
    assert asked.state == "approved"
    task.refresh_from_db()
    assert (task.is_visible, task.is_unapproved) == (True, False)


def test_everybody_may_show_what_was_begun_under_another_setting(asked, task, ada, settings):
    settings.NEW_TASKS = "everybody"
    change_task(task=task, actor=ada, fields={"is_visible": True})
    asked.refresh_from_db()
    settings.NEW_TASKS = "approval"
    assert asked.state == "withdrawn"
    assert not Task.objects.get().is_unapproved


def test_a_deleted_task_is_asked_for_no_more(asked, as_ada, decide):
    assert as_ada.post(f"{OWN}delete/").url == "/new/"
    asked.refresh_from_db()
    assert asked.state == "withdrawn"
    assert decide(asked, {**YES, "code": "names"}).status_code == 422
    assert not Task.objects.exists()


def test_a_bounded_number_is_begun_also_with_open_rounds(settings, task, ada, as_ada):
    settings.NEW_TASKS_AT_ONCE = 1
    ContextFactory(round=task.rounds.get(), fields={})
    set_round_state(round=task.rounds.get(), state="open", actor=ada)
    assert as_ada.post(NEW, {"name": "More", "code": "more"}).status_code == 422
    Task.objects.update(is_unapproved=False)
    assert as_ada.post(NEW, {"name": "More", "code": "more"}).status_code == 302


def test_a_proposal_of_a_former_release_makes_its_task(boss, ada, decide):
    about = {"kind": "template", "source": "entities", "name": "Names", "wanted_code": "names"}
    old = TaskProposal.objects.create(proposer=ada, goal="x", people="y", **about)
    assert decide(old, {**YES, "code": "other"}).status_code == 302
    made = Task.objects.get()
    assert (made.code, made.name, made.made_by) == ("other", "Names", ada)
    assert (made.is_visible, made.is_unapproved) == (False, False)


def test_the_admin_shows_requests_to_superusers_and_leads_to_the_page(asked, as_boss, as_alice):
    url = f"/admin/tasks/taskproposal/{asked.pk}/change/"
    assert f'href="/new/proposals/{asked.pk}/"' in as_boss.get(url).text
    assert as_boss.get("/admin/tasks/taskproposal/").status_code == 200
    assert as_boss.post(url, {"state": "approved"}).status_code == 403
    assert as_alice.get(url, follow=True).status_code == 403


def test_a_request_is_among_the_persons_data(asked, as_ada):
    (told,) = json.loads(as_ada.get("/me/data/download/").getvalue())["proposals"]
    assert (told["goal"], told["state"]) == ("To find names.", "waiting")


def test_others_ask_and_decide_nothing(asked, task, as_ada, as_alice, alice):
    TaskMember.objects.create(task=task, user=alice, role="editor")
    for client in (as_ada, as_alice):
        assert client.get("/new/proposals/").status_code == 404
        assert client.post(f"/new/proposals/{asked.pk}/", YES).status_code == 404
    assert as_alice.post(f"{OWN}access/approval/", FORM).status_code == 403
    assert as_ada.post(f"{OWN}access/approval/", {"goal": ""}).status_code == 422
    assert Task.objects.get().is_unapproved


def test_without_a_confirmed_address_nothing_is_made(as_alice):
    assert as_alice.post(NEW, {"name": "Names", "code": "names"}).status_code == 422
    assert not Task.objects.exists()


def test_the_proposer_withdraws_it_while_it_waits(asked, as_ada, as_boss, decide):
    withdraw = f"/new/proposals/{asked.pk}/withdraw/"
    assert withdraw in as_ada.get(f"{OWN}access/").text
    assert as_boss.post(withdraw).status_code == 404
    assert as_ada.post(withdraw).url == f"{OWN}access/"
    asked.refresh_from_db()
    assert asked.state == "withdrawn"
    assert decide(asked, YES).status_code == 422
    assert Task.objects.get().is_unapproved
    assert LogEntry.objects.filter(action="proposal.withdrawn").count() == 1
