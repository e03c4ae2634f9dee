"""The owners' page about machines of others: who may, what they hold, what they answered."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluation.models import OwnWorker
from tasks.models import TaskMember
from tests.support.evaluations import set_version
from tests.support.factories import TaskFactory, UserFactory
from tests.support.own_workers import fill_own_workers

PAGE = "/own/nli/own-workers/"


@pytest.fixture
def task(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return TaskFactory(code="nli")


@pytest.fixture
def as_owner(client, task):
    owner = UserFactory()
    TaskMember.objects.create(task=task, user=owner, role="owner")
    client.force_login(owner)
    return client


def test_owners_let_people_and_take_it_back(as_owner, task):
    bob = UserFactory(email="bob@example.com")
    asked = {"email": "bob@example.org", "second": "worker", "takes_sealed": "on"}
    refused = as_owner.post(PAGE, asked)
    assert refused.status_code == 422
    assert "bob@example.org" in refused.content.decode()
    assert as_owner.post(PAGE, asked | {"email": bob.email}).status_code == 302
    assert as_owner.post(PAGE, asked | {"email": bob.email}).status_code == 422
    made = OwnWorker.objects.get()
    assert (made.user, made.second, made.takes_sealed) == (bob, "worker", True)
    assert bob.email in as_owner.get(PAGE).content.decode()
    assert as_owner.get(f"{PAGE}{made.pk}/remove/").status_code == 405
    assert as_owner.post(f"{PAGE}{made.pk}/remove/").status_code == 302
    assert not OwnWorker.objects.exists()


def test_owners_see_what_machines_hold_and_answered(as_owner, task):
    version = set_version(task, may_leave=True)
    fill_own_workers(task, version, 1)

    def ask():
        with CaptureQueriesContext(connection) as queries:
            page = as_owner.get(PAGE).content.decode()
        return page, len(queries)

    ask()  # what the header counts is kept from then on
    (page, few), words = ask(), ("w1@example.com", "dyna_held…", "dyna_done…", "model-1", "7 of 40")
    assert [word for word in words if word not in page] == []
    for number in range(2, 6):
        fill_own_workers(task, version, number)
    page, more = ask()
    assert "model-5" in page
    assert more == few


@pytest.mark.parametrize("role", ["editor", "reviewer", None])
def test_nobody_else_enters(client, task, role):
    user = UserFactory()
    if role:
        TaskMember.objects.create(task=task, user=user, role=role)
    made = OwnWorker.objects.create(task=task, user=user)
    client.force_login(user)
    wanted = 403 if role else 404
    assert client.get(PAGE).status_code == wanted
    assert client.post(PAGE, {"email": user.email, "second": "nobody"}).status_code == wanted
    assert client.post(f"{PAGE}{made.pk}/remove/").status_code == wanted
    assert OwnWorker.objects.count() == 1
