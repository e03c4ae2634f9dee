"""Sets of rounds that are too small to rank by, or were taken while their round was judged."""

import pytest
from django.core.cache import cache

from dynabench.communities.models import Community, CommunityTask
from evaluation.models import EvaluationRun, EvaluationSetVersion
from evaluation.runs.services import request_missing_runs
from leaderboard.board.matrix import read_matrix
from leaderboard.board.services import store_first_models
from leaderboard.board.tables import build_public_table
from leaderboard.snapshots.services import take_snapshot
from tests.support.boards import measured, ranks_any
from tests.support.evaluations import accepted_model, nli_rows, set_version
from tests.support.factories import RoundFactory, TaskFactory

FAR = "132 of 400 judged"


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


def round_version(task, number, size, **columns):
    """A version of a round's set."""
    round = RoundFactory(task=task, number=number, state="closed")
    version = set_version(task, f"round-{number}", size, source="round", round=round)
    EvaluationSetVersion.objects.filter(pk=version.pk).update(**columns)
    return version


def counting(task):
    return [one.name for one in read_matrix(task).counting_sets]


def test_a_small_round_is_shown_and_never_ranked_by(task):
    small = round_version(task, 1, 384)
    measured(accepted_model(task, name="m", is_published=True), small, 0.9)
    assert counting(task) == []
    control = set_version(task, "control", access="standard", source="control")
    assert counting(task) == ["control"]
    measured(accepted_model(task, name="n", is_published=True), control, 0.7)
    table = build_public_table(task)
    assert {row["model"]: row["rank"] for row in table["rows"]} == {"n": "1", "m": ""}
    assert {
        row["model"]: [name for name, cells in row["sets"].items() if cells]
        for row in table["rows"]
    } == {
        "n": ["control"], "m": ["round-1"],
    }  # fmt: skip
    assert [(one["name"], one["counts"], one["min_examples"]) for one in table["sets"]] == [
        ("control", True, 0), ("round-1", False, 385),
    ]  # fmt: skip
    round_version(task, 2, 385)
    assert counting(task) == ["round-2"]
    ranks_any(task)
    assert counting(task) == ["round-1", "round-2"]


def test_a_set_of_the_owners_own_ranks_at_any_size(task):
    round_version(task, 1, 6)
    set_version(task, "ours", size=6)
    assert counting(task) == ["ours"]


def test_a_board_without_a_large_enough_set_says_so(task, client):
    model = measured(accepted_model(task, is_published=True), round_version(task, 1, 6), 0.9)
    board = client.get("/t/nli/leaderboard/").text
    assert 'id="none-counts"' in board
    assert "385" in board
    assert "large enough" in client.get(f"/m/{model.pk}/").text
    ranks_any(task)
    board = client.get("/t/nli/leaderboard/").text
    assert 'id="none-counts"' not in board
    assert "A test." in board  # the owner's reason


def test_wherever_early_numbers_stand_it_says_how_far_they_are_judged(task, client):
    ranks_any(task)
    version = round_version(task, 1, 6, judged=132, to_judge=400)
    first, second = (
        measured(accepted_model(task, name=name, is_published=True), version, value)
        for name, value in (("a", 0.6), ("b", 0.7))
    )
    take_snapshot(task=task, actor=None)
    store_first_models(task=task)  # for lists of boards; a job does it after every change
    board = "/t/nli/leaderboard/"
    community = Community.objects.create(slug="g", name="Group", is_listed=True)
    CommunityTask.objects.create(community=community, task=task, state="in")
    pages = [
        "/communities/g/", "/leaderboards/", "/t/nli/", "/t/nli/models/", f"/m/{first.pk}/",
        f"/m/{first.pk}/badge.svg", board, f"{board}embed/", f"{board}rounds/",
        f"{board}snapshots/1/", f"{board}compare/?a={first.pk}&b={second.pk}",
        *(f"{board}?format={name}" for name in ("csv", "latex")),
        *(f"{board}snapshots/1/?format={name}" for name in ("csv", "latex")),
    ]  # fmt: skip
    assert [page for page in pages if FAR not in client.get(page).text] == []
    cache.clear()
    for page in (f"{board}?format=json", "/t/nli/leaderboard.json"):
        (one,) = client.get(page).json()["sets"]
        assert (one["is_provisional"], one["judged"], one["to_judge"]) == (True, 132, 400)
    compared = f"/api/v1/tasks/nli/leaderboard/compare/?a={first.pk}&b={second.pk}"
    scores = f"/api/v1/models/{first.pk}/scores/"
    for page, rows in ((compared, "rows"), (scores, "results")):
        found = client.get(page).json()[rows]
        assert {(row["judged"], row["to_judge"]) for row in found} == {(132, 400)}


def test_all_models_run_again_when_a_set_changes_and_old_results_stay(task):
    early = round_version(task, 1, 6)
    models = [accepted_model(task, name=name, is_published=True) for name in "ab"]
    for model in models:
        measured(model, early, 0.6)
    late = set_version(task, "round-1", rows=nli_rows(7))
    made = request_missing_runs()
    assert {run.version for run in made} == {late}
    assert {run.submission for run in made if run.suite == "plain"} == {*models}
    kept = EvaluationRun.objects.filter(version=early, suite="plain", outcome="ok")
    assert [run.scores.get(metric="accuracy", slice="").value for run in kept] == [0.6, 0.6]
    assert read_matrix(task).numbers.outdated.all()
