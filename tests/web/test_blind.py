"""Who may read labels judges nothing; what tells a label is final; who takes part reads nothing."""

import re

import pytest

from core.accounts.services import get_annotator
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from tests.support.gold_items import REFRESHER, always, make_gold  # noqa: F401 - a fixture
from tests.support.judging import URL, judge, with_reveal, write
from tests.web.conftest import HTMX
from validation.judging import blind, services
from validation.models import GoldAnswer, JudgeLease, Validation

Role = TaskMember.Role
READERS = [Role.OWNER, Role.EDITOR, Role.REVIEWER, Role.VIEWER, "superuser"]


def become(user, task, role):
    """Give the person a role, or make them a superuser."""
    if role == "superuser":
        user.is_superuser = True
        user.save()
    else:
        TaskMember.objects.create(task=task, user=user, role=role)


@pytest.fixture
def example(nli, bob):
    return write(nli, bob)


@pytest.mark.parametrize("role", READERS)
def test_who_reads_labels_is_handed_nothing(as_alice, alice, example, role):
    become(alice, example.round.task, role)
    page = as_alice.get(URL)
    assert page.status_code == 200
    assert 'name="example"' not in page.text
    assert (f"/own/{example.round.task.code}/review/" in page.text) == (role != Role.VIEWER)
    assert not JudgeLease.objects.exists()


@pytest.mark.parametrize("role", READERS)
def test_who_reads_labels_since_the_handing_out_does_not_vote(as_alice, alice, example, role):
    as_alice.get(URL)
    become(alice, example.round.task, role)
    data = {"example": example.uuid, "answer": "label:neutral"}
    assert as_alice.post(URL, data, **HTMX).status_code == 403
    flag = {"example": example.uuid, "flag_reason": "personal"}
    assert as_alice.post(URL + "flag/", flag, **HTMX).status_code == 403
    assert not Validation.objects.exists()


def test_who_reads_labels_since_the_vote_does_not_take_it_back(as_alice, alice, example):
    judge(as_alice, "label:neutral")
    become(alice, example.round.task, Role.VIEWER)
    assert as_alice.post(f"/judge/{example.uuid}/undo/", **HTMX).status_code == 403
    assert Validation.objects.exists()


@pytest.fixture
def hidden(nli):
    nli.task.is_visible = False
    nli.task.save()
    return nli


def test_an_annotator_takes_part_in_a_hidden_task(as_alice, alice, hidden, bob):
    write(hidden, bob)
    assert as_alice.get(URL).status_code == 404
    become(alice, hidden.task, Role.ANNOTATOR)
    for page in ("/t/nli/", "/t/nli/write/", "/t/nli/leaderboard/", URL):
        assert as_alice.get(page).status_code == 200, page
    assert "nli" in as_alice.get("/").text
    judge(as_alice, "label:neutral")
    assert Validation.objects.get().validator == get_annotator(alice)


def test_an_annotator_reads_nothing_in_the_admin(as_alice, alice, hidden):
    """Pages: tests/web/roles.txt; the API: tests/api/roles.txt."""
    become(alice, hidden.task, Role.ANNOTATOR)
    for table in ("annotation/example", "validation/validation", "tasks/context", "tasks/task"):
        assert as_alice.get(f"/admin/{table}/", follow=True).status_code == 403, table


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_what_was_revealed_is_not_taken_back(as_alice, alice, example, headers):
    with_reveal(example.round.task)
    undo = f"/judge/{example.uuid}/undo/"
    page = judge(as_alice, "label:entailment", **headers)
    assert 'id="author-said"' in page.text
    assert undo not in page.text
    assert undo not in as_alice.get(URL).text
    assert as_alice.post(undo, **HTMX).status_code == 409
    judge_again = {"example": example.uuid, "answer": "label:neutral"}
    assert as_alice.post(URL, judge_again, **HTMX).status_code == 409
    assert Validation.objects.get().label == "entailment"


def test_what_revealed_nothing_is_taken_back(as_alice, example):
    with_reveal(example.round.task)
    page = judge(as_alice, "verdict:cannot_tell", **HTMX)
    undo = f"/judge/{example.uuid}/undo/"
    assert undo in page.text
    assert as_alice.post(undo, **HTMX).status_code == 200
    assert not Validation.objects.exists()


@pytest.mark.parametrize("when", ["{verdict: incorrect}", "{field: label, equals: neutral}"])
def test_a_question_that_tells_the_label_makes_the_vote_final(as_alice, example, when):
    """It is asked only of who disagrees with the author, or only of some labels."""
    task = example.round.task
    task.config_text = task.config_text.replace("when: {verdict: flagged}", f"when: {when}")
    task.save()
    assert "why_flagged" not in as_alice.get(URL).text  # before the vote it tells nothing
    judge(as_alice, "label:entailment", **HTMX)
    assert as_alice.post(f"/judge/{example.uuid}/undo/", **HTMX).status_code == 409
    assert Validation.objects.exists()


def test_gold_is_not_mended_once_it_was_told(as_alice, alice, nli, bob, always):  # noqa: F811
    make_gold(nli, UserFactory(), bob, count=20)
    for number in range(20):
        write(nli, UserFactory(), number)
    judge(as_alice, "label:neutral", **HTMX)
    while GoldAnswer.objects.count() < 8:
        page = judge(as_alice, "label:entailment", **HTMX)
    assert 'id="refresher"' in page.text
    assert not re.search("/judge/.+/undo/", page.text)
    told = list(GoldAnswer.objects.all())
    for _ in range(2):  # while the refresher tells, and after it
        for answer in told:
            undo = f"/judge/{answer.example.uuid}/undo/"
            assert as_alice.post(undo, **HTMX).status_code == 409
        as_alice.post(REFRESHER, **HTMX)
    assert GoldAnswer.objects.filter(is_correct=False).count() == 8


def test_every_door_uses_the_service(nli, bob, alice):
    example = write(nli, bob)
    validator = get_annotator(alice)
    become(alice, nli.task, Role.VIEWER)
    assert services.lease_next(validator=validator, task=nli.task) is None
    with pytest.raises(blind.NotBlind):
        blind.check_may_judge(validator, example.round.task)
