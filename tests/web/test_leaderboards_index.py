"""The page of all leaderboards: who sees which, with what of them."""

import re

import pytest
from django.utils import timezone

from tests.support.boards import list_models
from tests.support.evaluations import accepted_model
from tests.support.factories import RoundFactory, TaskFactory, UserFactory

URL = "/leaderboards/"


@pytest.fixture
def tasks(db):
    """An open task with a ranked model, one without models, and one that is not public."""
    ranked = TaskFactory(code="nli", name="Ranked")
    accepted_model(ranked, name="Ada", is_published=True)
    accepted_model(ranked, name="Withdrawn", is_published=True, withdrawn_at=timezone.now())
    list_models(ranked, ("1", "Ada", {"value": 71.25, "low": 70.0, "high": 72.5}))
    empty = TaskFactory(code="qa", name="Empty")
    secret = TaskFactory(code="sentiment", name="Secret", is_visible=False)
    return ranked, empty, secret


def boards(page):
    return re.findall(r'id="board-(\w+)"', page)


def test_tasks_with_models_come_first(client, tasks):
    response = client.get(URL)
    assert boards(response.text) == ["nli", "qa"]
    assert [board.models for board in response.context["boards"]] == [1, 0]
    assert response.context["boards"][0].preview.rows == [("1", "Ada", 71.25)]
    assert 'href="/t/qa/submit/"' in response.text
    assert 'href="/t/nli/submit/"' not in response.text


def test_all_cards_have_the_same_axis(client, tasks):
    page = client.get(URL)
    axis = page.context["boards"][0].preview.axis
    assert (axis.low, axis.high) == (0, 100)
    assert '<svg x="71.25%" y="50%"><path class="chosen dot"' in page.text


def test_scores_beyond_the_axis_have_one_that_fits(client, tasks):
    score = {"value": -4.0, "low": -5.0, "high": -3.0}
    list_models(tasks[0], ("1", "Ada", score))
    axis = client.get(URL).context["boards"][0].preview.axis
    assert (axis.low, axis.high) == (-5, -3)


def test_a_model_of_several_files_counts_once(client, tasks):
    owner = UserFactory()
    for _number in range(3):
        accepted_model(tasks[1], owner, name="Files", kind="predictions", is_published=True)
        accepted_model(tasks[1], owner, name="Folder", kind="directory", is_published=True)
    accepted_model(tasks[1], UserFactory(), name="Files", kind="predictions", is_published=True)
    counts = {board.task.code: board.models for board in client.get(URL).context["boards"]}
    assert counts == {"nli": 1, "qa": 5}  # two of files, and three folders


def test_tasks_that_are_not_public_are_for_those_who_may_see_them(client, tasks):
    client.force_login(UserFactory(is_superuser=True))
    assert set(boards(client.get(URL).text)) == {"nli", "qa", "sentiment"}


def test_without_tasks_it_says_so(client, db):
    assert 'id="no-boards"' in client.get(URL).text


def test_the_header_leads_there(client, db):
    assert 'href="/leaderboards/"' in client.get("/").text


def test_each_board_names_its_leader_once(client, tasks):
    row = re.search(r'<tr id="board-nli">(.*?)</tr>', client.get(URL).text, re.S)[1]
    assert row.count("<bdi>Ada</bdi>") == 1
    assert "71.2" in row
    assert "70.0 to 72.5" in " ".join(row.split())
    assert 'class="state open"' not in row
    RoundFactory(task=tasks[0], state="open")
    row = re.search(r'<tr id="board-nli">(.*?)</tr>', client.get(URL).text, re.S)[1]
    assert 'class="state open"' in row


@pytest.mark.parametrize(("rank", "is_tied"), [("1", False), ("1=", True)])
def test_a_shared_first_rank_is_marked(client, tasks, rank, is_tied):
    list_models(tasks[0], (rank, "Ada", {"value": 50.0, "low": 40.0, "high": 60.0}))
    assert client.get(URL).context["boards"][0].leader.is_tied == is_tied


def test_a_leader_whose_score_is_a_range_is_drawn_as_one(client, tasks):
    score = {"value": None, "low": 40.0, "high": 70.0, "least": 50.0, "most": 60.0}
    list_models(tasks[0], ("1", "Ada", score))
    page = client.get(URL).text
    assert 'class="chosen range"' in page
    assert "50.0–60.0" in page
