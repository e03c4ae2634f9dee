"""Somebody judges an example whose answer the site has told them, and cannot.

The example that a writer was given to change came with its author's label, and was then handed to
the same person to judge blindly: nine such votes were cast. What was shown elsewhere is a row now.
"""

import re
from importlib import import_module

import pytest
from allauth.account.models import EmailAddress
from django.apps import apps
from django.test import Client
from rest_framework.test import APIClient

from annotation.models import Assignment, Example, ShownExample
from annotation.shown_services import note_shown_examples
from core.accounts.models import confirm_address
from core.accounts.services import get_annotator
from tasks.models import Task, TaskMember
from tasks.permissions import can_read
from tests.support.api_writing import error
from tests.support.campaigns import open_campaign, take_part
from tests.support.factories import UserFactory
from tests.support.gold_items import always, make_gold  # noqa: F401
from tests.support.judging import URL, write
from tests.support.writing import signed_in
from tests.web.conftest import HTMX
from validation.judging import queue
from validation.judging.queue_services import fill_queue
from validation.judging.services import lease_next
from validation.models import GoldAnswer, JudgeLease, Validation

WAYS = ShownExample.Way.values
NEXT = "/api/v1/tasks/nli/judging/next/"


@pytest.fixture
def worker(alice):
    return get_annotator(alice)


def show(worker, *examples, way="edit"):
    note_shown_examples(annotator=worker, examples=[one.pk for one in examples], way=way)


def shown_uuid(page):
    found = re.search(r'name="example" value="([^"]+)"', page.text)
    return found and found[1]


@pytest.mark.parametrize("way", WAYS)
def test_what_was_shown_is_never_handed_out(nli, alice, bob, worker, as_alice, way):
    known, fresh = write(nli, bob, 1), write(nli, bob, 2)
    show(worker, known, way=way)
    assert lease_next(validator=worker, task=nli.task).example == fresh
    sent = {"example": fresh.uuid, "answer": "label:neutral"}
    as_alice.post(URL, sent, **HTMX)
    assert lease_next(validator=worker, task=nli.task) is None
    assert queue.list_other_queues(worker, nli.task) == []
    assert lease_next(validator=get_annotator(UserFactory()), task=nli.task)  # others judge it


def test_another_tasks_queue_is_not_offered_for_what_was_shown(nli, qa, bob, worker):
    example = write(qa, bob, question="When?", answer={"text": "1840", "start": 22, "end": 26})
    fill_queue(round=qa)
    assert [task for task, _ in queue.list_other_queues(worker, nli.task)] == [qa.task]
    show(worker, example)
    assert queue.list_other_queues(worker, nli.task) == []


def test_a_lease_from_before_is_left_and_its_vote_refused(nli, bob, worker, as_alice):
    write(nli, bob, 1)
    write(nli, bob, 2)
    held = shown_uuid(as_alice.get(URL))
    show(worker, Example.objects.get(uuid=held))
    page = as_alice.post(URL, {"example": held, "answer": "label:neutral"}, **HTMX)
    assert page.status_code == 403
    assert shown_uuid(page) not in (None, held)
    flag = {"example": held, "flag_reason": "copied"}
    assert as_alice.post(f"{URL}flag/", flag, **HTMX).status_code in (403, 422)
    assert not Validation.objects.exists()


def test_a_program_is_refused_with_the_code(nli, alice, bob, worker):
    nli.task.config_text += "\nprograms: {judge: true}\n"
    nli.task.save()
    write(nli, bob, 1)
    api = APIClient()
    api.force_login(alice)
    uuid = api.post(NEXT).json()["example"]
    show(worker, Example.objects.get(uuid=uuid))
    refused = api.post(f"/api/v1/examples/{uuid}/validations/", {"vote": "label:neutral"})
    error(refused, 403, "already_shown")
    assert api.post(NEXT).status_code == 204
    assert not Validation.objects.exists()


def test_a_vote_is_taken_back_and_not_given_again(nli, bob, worker, as_alice):
    """An undone vote makes its example the current one again, unless it was shown meanwhile."""
    example = write(nli, bob, 1)
    as_alice.get(URL)
    as_alice.post(URL, {"example": example.uuid, "answer": "label:neutral"}, **HTMX)
    show(worker, example)
    as_alice.post(f"/judge/{example.uuid}/undo/", **HTMX)
    assert shown_uuid(as_alice.get(URL)) is None
    as_alice.post(URL, {"example": example.uuid, "answer": "label:entailment"}, **HTMX)
    assert not Validation.objects.exclude(label="neutral").exists()


def test_gold_that_was_shown_tests_nobody(nli, bob, worker, as_alice, always):  # noqa: F811
    (known, fresh) = make_gold(nli, bob, UserFactory(), 2)
    show(worker, known.example, way="tour")
    for number in range(3):
        write(nli, UserFactory(), number)
    for _ in range(5):
        if uuid := shown_uuid(as_alice.get(URL)):
            as_alice.post(URL, {"example": uuid, "answer": "label:neutral"}, **HTMX)
    leases = JudgeLease.objects.filter(is_gold=True)
    assert [lease.example for lease in leases] == [fresh.example]


def test_the_items_of_a_campaigns_test_are_shown_and_ask_nobody_again(nli, bob):
    gold = make_gold(nli, bob, UserFactory(), 3)
    campaign = open_campaign(nli.task, test_items=2, test_right=0, test_tries=1, kind="judge")
    client, _page = take_part(campaign)
    page = client.get(f"/c/{campaign.slug}/test/")
    answers = {str(one.example.uuid): "label:neutral" for one in gold}
    items = {one.example.pk for one in page.context["items"]}
    client.post(f"/c/{campaign.slug}/test/", answers)
    assert GoldAnswer.objects.count() == 2
    assert {*ShownExample.objects.filter(way="test").values_list("example", flat=True)} == items


def test_a_reader_who_becomes_a_judge_gets_nothing_that_they_discussed(nli, alice, bob, worker):
    discussed, fresh = write(nli, bob, 1), write(nli, bob, 2)
    member = TaskMember.objects.create(task=nli.task, user=alice, role="viewer")
    client = signed_in(alice)
    assert client.get(f"/own/nli/examples/{discussed.uuid}/").status_code == 200
    member.role = "judge"
    member.save()
    assert lease_next(validator=worker, task=nli.task).example == fresh


def test_a_reader_who_drops_the_address_of_the_role_judges_nothing(nli, qa, alice, bob, worker):
    """A role that was given to an address stops counting; the person has read the labels."""
    member = TaskMember.objects.create(
        task=nli.task, user=alice, role="viewer", address=alice.email
    )
    confirm_address(alice)
    write(nli, bob, 1)
    fill_queue(round=nli)
    api, uuid = APIClient(), Example.objects.get().uuid
    api.force_login(alice)
    assert api.get(f"/api/v1/examples/{uuid}/").json()["inputs"]["label"] == "neutral"
    EmailAddress.objects.filter(user=alice).delete()
    assert not can_read(alice, Task.objects.get(pk=nli.task.pk))
    assert lease_next(validator=worker, task=Task.objects.get(pk=nli.task.pk)) is None
    assert api.post(NEXT).status_code in (403, 404)
    assert queue.list_other_queues(worker, qa.task) == []
    member.delete()  # an owner says so
    assert lease_next(validator=worker, task=Task.objects.get(pk=nli.task.pk))


def test_examples_to_change_come_from_no_round_that_is_judged(nli, bob, as_alice):
    example = write(nli, bob, 1)
    sent = {"content_type": "application/json"}
    refused = as_alice.post("/api/v1/tasks/nli/assignment/", {"want": "edit"}, **sent)
    error(refused, 409, "no_context")
    as_alice.post("/t/nli/write/next/", {"want": "edit"}, **HTMX)
    assert not Assignment.objects.filter(parent=example).exists()


def test_what_was_shown_before_there_were_rows_is_known(nli, bob, worker):
    """The migration notes parents and worked examples of all assignments, once each."""
    edited, worked = write(nli, bob, 1), write(nli, bob, 2)
    context = nli.contexts.first()
    of = {"annotator": worker, "round": nli, "context": context, "left_at": "2026-01-01T00:00Z"}
    for fields in ({"parent": edited}, {"worked": [edited.pk, worked.pk, 10**6]}, {"worked": []}):
        Assignment.objects.create(**of, **fields)
    import_module("annotation.migrations.0017_shown_before").note_shown(apps, None)
    found = ShownExample.objects.values_list("example", "annotator", "way")
    assert {*found} == {(edited.pk, worker.pk, "edit"), (worked.pk, worker.pk, "gallery")}


def test_who_leaves_takes_the_rows_along(nli, bob, worker, alice):
    from dynabench.people.deletion.services import delete_person

    show(worker, write(nli, bob, 1))
    assert b'"shown"' in b"".join(signed_in(alice).get("/me/data/download/").streaming_content)
    delete_person(user=alice)
    assert not ShownExample.objects.exists()
    assert Client().get("/").status_code == 200
