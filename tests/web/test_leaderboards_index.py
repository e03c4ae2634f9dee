"""The page of all leaderboards: who sees which, with what of them."""

import re

import pytest
from django.utils import timezone

from leaderboard.models import Snapshot
from tests.support.evaluations import accepted_model
from tests.support.factories import TaskFactory, UserFactory

URL = "/leaderboards/"


@pytest.fixture
def tasks(db):
    """An open task with a ranked model, one without models, and one that is not public."""
    ranked = TaskFactory(code="nli", name="Ranked")
    accepted_model(ranked, name="Ada", is_published=True)
    accepted_model(ranked, name="Withdrawn", is_published=True, withdrawn_at=timezone.now())
    score = {"value": 71.25, "low": 70.0, "high": 72.5}
    row = {"rank": "1", "model": "Ada", "dynascore": score}
    table = {"sets": [], "rows": [row]}
    Snapshot.objects.create(task=ranked, number=1, table=table, sha256="a" * 64)
    empty = TaskFactory(code="qa", name="Empty")
    secret = TaskFactory(code="sentiment", name="Secret", is_visible=False)
    return ranked, empty, secret


def boards(page):
    return re.findall(r'id="board-(\w+)"', page)


def test_tasks_with_models_come_first(client, tasks):
    response = client.get(URL)
    assert boards(response.text) == ["nli", "qa"]
    assert [models for _task, _top, models, _size in response.context["boards"]] == [1, 0]
    assert response.context["boards"][0][1].rows == [("1", "Ada", 71.25)]
    assert 'href="/t/qa/submit/"' in response.text
    assert 'href="/t/nli/submit/"' not in response.text


def test_tasks_that_are_not_public_are_for_those_who_may_see_them(client, tasks):
    client.force_login(UserFactory(is_superuser=True))
    assert set(boards(client.get(URL).text)) == {"nli", "qa", "sentiment"}


def test_without_tasks_it_says_so(client, db):
    assert 'id="no-boards"' in client.get(URL).text


def test_the_header_leads_there(client, db):
    assert 'href="/leaderboards/"' in client.get("/").text
