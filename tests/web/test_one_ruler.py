"""The leaderboard on one ruler: expected scores beside measured ones, never alone."""

import csv

import pytest
from django.utils import timezone

from evaluation.models import EvaluationRun
from evaluation.scoring.ruler import prediction
from evaluation.test_sets.shown_scores import describe_disclosure
from leaderboard.board import one_ruler
from leaderboard.board.cells import Cell
from leaderboard.models import Board
from tasks.models import TaskMember
from tests.support.factories import TaskFactory, UserFactory
from tests.support.rulers import let_answer, make_ruler, make_sets

pytestmark = pytest.mark.django_db
URL, API = "/t/nli/leaderboard/?ruler=1", "/api/v1/tasks/nli/leaderboard/ruler/"
ROUNDS = "/t/nli/leaderboard/rounds/"


@pytest.fixture(autouse=True)
def fit_fast(monkeypatch):
    """Leave out models in few parts: the fit itself has tests of its own."""
    monkeypatch.setattr(prediction, "MAX_FOLDS", 4)


@pytest.fixture
def task():
    return TaskFactory(code="nli")


@pytest.fixture
def sets(task):
    return make_sets(task)


@pytest.fixture
def owner(task):
    user = UserFactory()
    TaskMember.objects.create(task=task, user=user, role="owner")
    return user


def test_the_switch_says_why_there_is_no_ruler(client, task, owner, sets):
    assert "ruler=1" not in client.get("/t/nli/leaderboard/").text
    let_answer(task, sets, 2)
    assert 'id="on-one-ruler"' in client.get("/t/nli/leaderboard/").text
    page = client.get(URL)
    assert (page.context["why"], page.context["may_edit"]) == ("no_ruler", False)
    assert client.get(f"{URL}&format=csv").status_code == 409
    client.force_login(owner)
    assert client.get(URL).context["may_edit"]
    assert client.get(API).json()["why"] == "no_ruler"


def test_models_and_rounds_are_on_one_axis_with_what_was_measured(client, task, owner, sets):
    whole = let_answer(task, sets, 22)
    old = let_answer(task, sets[:2], 2, first=22)
    ruler = make_ruler(task, owner, answers_public=True)
    page = client.get(URL)
    board = page.context["board"]
    assert board.ruler == ruler
    assert [round.set.name for round in board.rounds] == ["round-1", "round-2"]
    values = [line.expected.value for line in board.lines]
    assert values == sorted(values, reverse=True)
    assert {line.model.id for line in board.lines if line.is_whole} == {one.pk for one in whole}
    partly = [line for line in board.lines if not line.is_whole]
    assert {line.model.id for line in partly} == {one.pk for one in old}
    assert {line.measured_count for line in partly} == {1}
    body = client.get(f"{URL}&format=json").json()
    api = client.get(API).json()
    assert api["models"] == body["models"]
    [model] = [one for one in body["models"] if one["id"] == str(old[0].pk)]
    assert [score["is_measured"] for score in model["scores"]] == [True, False]
    assert model["scores"][1]["measured"]["value"] is None
    assert model["scores"][1]["expected"]["low"] < model["scores"][1]["expected"]["value"]
    lines = list(csv.DictReader(client.get(f"{URL}&format=csv").text.splitlines()))
    assert len(lines) == 48
    assert client.get("/t/nli/leaderboard/chart/one-ruler.svg").status_code == 200
    assert client.get(f"{URL}&format=xml").status_code == 400


def test_unpublished_models_are_shown_to_those_who_see_them(client, task, owner, sets):
    models = let_answer(task, sets, 22)
    models[0].is_published = False
    models[0].save(update_fields=["is_published"])
    make_ruler(task, owner, answers_public=True)
    assert len(client.get(URL).context["board"].lines) == 21
    assert len(client.get(f"{URL}&mine=1").context["board"].lines) == 21
    client.force_login(owner)
    assert len(client.get(f"{URL}&mine=1").context["board"].lines) == 22
    assert len(client.get(API, {"mine": "true"}).json()["models"]) == 22


def test_secret_anchors_round_scores_and_hide_kept_back_results(client, task, owner, sets):
    models = let_answer(task, sets, 22)
    before = describe_disclosure(sets[0]).bits
    make_ruler(task, owner)
    # The mean over both rounds, and a number for each.
    assert len(describe_disclosure(sets[0]).metrics) >= 3
    assert describe_disclosure(sets[0]).bits > before
    models[0].runs.filter(version=sets[0]).update(is_shown=False)
    page = client.get(URL)
    board = page.context["board"]
    assert board.is_rounded
    assert models[0].pk not in {line.model.id for line in board.lines}
    # 20 anchors have 8 steps.
    shown = [line.expected.value for line in board.lines]
    scores = [score.expected.value for _line, scores in page.context["rows"] for score in scores]
    assert {8 * value / 100 % 1 for value in shown + scores} == {0.0}


def test_rounding_discloses_only_the_step():
    exact = [Cell(61.2, 55.0, 66.0), Cell(58.0, 40.0, 90.0)]
    first, second = (one_ruler.round_cell(cell, 4.0, 100) for cell in exact)
    assert first == second == Cell(60.0, 53.5, 66.5)
    assert one_ruler.round_cell(Cell(99.9, 99, 100), 4.0, 100).high == 100.0


def test_the_page_of_rounds_says_how_much_of_a_fall_is_harder_examples(client, task, owner, sets):
    let_answer(task, sets, 22, harder=1.0)
    let_answer(task, sets[:2], 2, first=22)
    assert client.get(ROUNDS).context["last_fall"] is None
    make_ruler(task, owner, answers_public=True)
    split = client.get(ROUNDS).context["last_fall"].split
    assert split.both_count == 22
    assert 0 < split.low < split.harder < split.high
    assert split.fall == pytest.approx(split.harder + split.others)
    for body in (
        client.get(f"{ROUNDS}?format=json").json(),
        client.get("/api/v1/tasks/nli/leaderboard/rounds/").json(),
    ):
        assert body["last_fall"]["harder"]["value"] == pytest.approx(100 * split.harder)
    # People wrote the second round against these: what is left is too few to tell.
    EvaluationRun.objects.filter(version=sets[2]).update(in_the_loop=True)
    Board.objects.update_or_create(task=task, defaults={"renewed_to": timezone.now()})
    assert client.get(ROUNDS).context["last_fall"] is None
