"""Proposed tasks: who proposes and decides, what the decision makes and tells."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json

import pytest

from dynabench.accounts.models import LogEntry
from tasks.models import Task, TaskMember, TaskProposal
from tests.support.factories import UserFactory
from tests.support.new_tasks import NEW, ada, as_ada  # noqa: F401
from tests.support.writing import signed_in

FORM = {"name": "Names", "code": "names", "goal": "To find names.", "people": "My class."}
YES = {"approve": "yes", "code": "names", "reason": "Go ahead."}


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
def proposal(boss, as_ada, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        assert as_ada.post(NEW, FORM).url == "/new/"
    return TaskProposal.objects.get()


def decide(client, proposal, callbacks, form):
    with callbacks(execute=True):
        return client.post(f"/new/proposals/{proposal.pk}/", form)


def test_a_proposal_waits_and_administrators_are_told(proposal, as_ada, as_boss, mailoutbox):
    assert not Task.objects.exists()
    assert (proposal.kind, proposal.source, proposal.state) == ("template", "entities", "waiting")
    assert [mail.to for mail in mailoutbox] == [["boss@example.com"]]
    assert f"/new/proposals/{proposal.pk}/" in mailoutbox[0].body
    assert "Names" in as_ada.get("/new/").text
    assert 'href="/new/proposals/"' in as_boss.get("/new/").text
    assert "Names" in as_boss.get("/new/proposals/").text
    assert "My class." in as_boss.get(f"/new/proposals/{proposal.pk}/").text


def test_approval_makes_the_task_of_the_proposer(
    proposal, ada, as_ada, as_boss, mailoutbox, django_capture_on_commit_callbacks
):
    form = {**YES, "code": "other"}
    assert decide(as_boss, proposal, django_capture_on_commit_callbacks, form).status_code == 302
    task = Task.objects.get()
    assert (task.code, task.name, task.made_by, task.is_visible) == ("other", "Names", ada, False)
    assert TaskMember.objects.get().user == ada
    proposal.refresh_from_db()
    assert (proposal.state, proposal.task) == ("approved", task)
    assert mailoutbox[-1].to == ["ada@example.com"]
    assert "Go ahead." in mailoutbox[-1].body
    assert "Go ahead." in as_ada.get("/new/").text
    assert as_ada.get("/own/other/").status_code == 200
    assert LogEntry.objects.filter(action="proposal.approved", task="other").exists()
    again = decide(as_boss, proposal, django_capture_on_commit_callbacks, YES)
    assert again.status_code == 422
    assert Task.objects.count() == 1


def test_a_proposal_is_declined_with_a_reason(
    proposal, as_ada, as_boss, mailoutbox, django_capture_on_commit_callbacks
):
    no = {**YES, "approve": "no", "reason": ""}
    refused = decide(as_boss, proposal, django_capture_on_commit_callbacks, no)
    assert [*refused.context["form"].errors] == ["reason"]
    no["reason"] = "We have one."
    assert decide(as_boss, proposal, django_capture_on_commit_callbacks, no).status_code == 302
    proposal.refresh_from_db()
    assert proposal.state == "declined"
    assert not Task.objects.exists()
    assert "We have one." in mailoutbox[-1].body
    assert "We have one." in as_ada.get("/new/").text


def test_the_admin_shows_proposals_to_superusers_and_leads_to_the_page(
    proposal, as_boss, as_alice, alice
):
    url = f"/admin/tasks/taskproposal/{proposal.pk}/change/"
    assert f'href="/new/proposals/{proposal.pk}/"' in as_boss.get(url).text
    assert as_boss.get("/admin/tasks/taskproposal/").status_code == 200
    assert as_boss.post(url, {"state": "approved"}).status_code == 403
    assert as_alice.get(url, follow=True).status_code == 403


def test_a_proposal_is_among_the_persons_data(proposal, as_ada):
    (told,) = json.loads(as_ada.get("/me/data/download/").getvalue())["proposals"]
    assert (told["goal"], told["state"]) == ("To find names.", "waiting")


def test_others_decide_nothing(proposal, as_ada, as_alice):
    for client in (as_ada, as_alice):
        assert client.get("/new/proposals/").status_code == 404
        assert client.post(f"/new/proposals/{proposal.pk}/", YES).status_code == 404
    assert not Task.objects.exists()


def test_a_code_that_was_taken_meanwhile_is_refused_and_nothing_is_decided(
    proposal, as_boss, nli, django_capture_on_commit_callbacks
):
    answer = decide(as_boss, proposal, django_capture_on_commit_callbacks, {**YES, "code": "nli"})
    assert [*answer.context["form"].errors] == ["code"]
    proposal.refresh_from_db()
    assert proposal.state == "waiting"


def test_a_copy_needs_the_proposers_right_when_it_is_made(
    ada, as_ada, boss, as_boss, qa, django_capture_on_commit_callbacks
):
    member = TaskMember.objects.create(task=qa.task, user=ada, role="editor")
    as_ada.post("/new/task/qa/", FORM)
    made = TaskProposal.objects.get()
    member.delete()
    assert decide(as_boss, made, django_capture_on_commit_callbacks, YES).status_code == 422
    assert Task.objects.count() == 1


def test_a_bounded_number_waits(settings, proposal, as_ada):
    settings.NEW_TASKS_AT_ONCE = 1
    assert as_ada.post(NEW, {**FORM, "code": "more"}).status_code == 422
    assert TaskProposal.objects.count() == 1


@pytest.mark.parametrize("field", ["goal", "people", "code", "name"])
def test_everything_is_asked_for(as_ada, field):
    answer = as_ada.post(NEW, {**FORM, field: ""})
    assert answer.status_code == 422
    assert [*answer.context["form"].errors] == [field]


def test_without_a_confirmed_address_nothing_is_proposed(as_alice):
    assert as_alice.post(NEW, FORM).status_code == 422
    assert not TaskProposal.objects.exists()


def test_the_proposer_withdraws_it_while_it_waits(
    proposal, as_ada, as_boss, mailoutbox, django_capture_on_commit_callbacks
):
    withdraw = f"/new/proposals/{proposal.pk}/withdraw/"
    assert withdraw in as_ada.get("/new/").text
    assert as_boss.post(withdraw).status_code == 404
    assert as_ada.post(withdraw).url == "/new/"
    proposal.refresh_from_db()
    assert proposal.state == "withdrawn"
    assert withdraw not in as_ada.get("/new/").text
    assert decide(as_boss, proposal, django_capture_on_commit_callbacks, YES).status_code == 422
    assert not Task.objects.exists()
    assert LogEntry.objects.filter(action="proposal.withdrawn").count() == 1
