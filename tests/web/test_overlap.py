"""A set that models were trained on does not look like one that nobody has seen."""

import re

import pytest
from rest_framework.test import APIClient

from evaluation.contract import SetRow
from evaluation.models import EvaluationSetVersion, TrainingRun
from evaluation.seeds import read_seed_rows, split_held_out
from evaluation.test_sets.seen_in_training import compare_sets, find_training_sources
from evaluation.test_sets.source_services import make_control_version
from leaderboard.board.matrix import read_matrix
from tests.support.boards import measured
from tests.support.evaluations import accepted_model, set_version
from tests.support.factories import RoundFactory, TaskFactory, UserFactory, scripted_target


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def task(db):
    return TaskFactory(code="nli", is_official=True)


@pytest.fixture
def seen(task):
    """A set of four seeds that models are trained on, and a sentence that is none."""
    rows = split_held_out(read_seed_rows("nli"))[0][:4]
    told = [(row["premise"].upper(), row["hypothesis"]) for row in rows] + [("New.", "It is.")]
    return set_version(
        task, "seen", rows=[
            SetRow(f"u{n}", {"premise": one, "hypothesis": other}, ("neutral",))
            for n, (one, other) in enumerate(told)
        ],
    )  # fmt: skip


def test_a_set_of_seeds_is_marked_and_what_is_held_out_is_not(client, task, seen):
    control = make_control_version(task)
    assert compare_sets() == 2
    assert compare_sets() == 0
    found = {one.pk: one.compute_overlap() for one in EvaluationSetVersion.objects.all()}
    assert found == {seen.pk: 0.8, control.pk: 0}
    overlaps = {one.name: one.overlap for one in read_matrix(task).sets}
    assert overlaps == {"seen": 0.8, "control": 0}
    assert 'data-mark="overlap" data-share="80.0"' in client.get("/t/nli/leaderboard/").text
    sets = APIClient().get("/api/v1/tasks/nli/evaluation-sets/").json()["results"]
    assert {one["name"]: one["newest"]["overlap"] for one in sets} == overlaps


def test_a_new_release_is_compared_too(task, seen, monkeypatch):
    compare_sets()
    monkeypatch.setattr(
        "evaluation.test_sets.seen_in_training._find_sources", lambda task: {"seed": 0, "round1": 9}
    )
    monkeypatch.setattr(
        "evaluation.test_sets.seen_in_training._read_source",
        lambda task, name, pk: [{"premise": "New.", "hypothesis": "It is"}] if pk else [],
    )
    assert compare_sets() == 1
    seen.refresh_from_db()
    assert seen.overlap["rows"] == {"round1": 1}


def test_a_model_says_how_much_of_a_set_it_was_trained_on(client, task, seen):
    owner = UserFactory()
    models = [
        accepted_model(task, owner, name=text or "silent", trained_on=text, is_published=True)
        for text in ("", "the seeds", "round 3")
    ]
    compare_sets()
    for model, share in zip(models, (None, 0.8, 0), strict=True):
        measured(model, seen, 0.817)
        rows = APIClient().get(f"/api/v1/models/{model.pk}/runs/").json()["results"]
        assert {run["overlap"] for run in rows} == {share}
        page = client.get(f"/m/{model.pk}/").text
        marks = re.findall(r'data-mark="([\w-]+)"', page)
        assert marks == ["trained-on" if share == 0.8 else "overlap"]
        assert "80.0" in page


def test_what_a_target_was_trained_on_is_known_with_its_base(task):
    round = RoundFactory(task=task)
    starter, newer = (scripted_target(round, name) for name in ("starter", "newer"))
    starter.source, newer.source = "/home/models/starters/nli/abc", "/home/models/targets/nli/d"
    for target in (starter, newer):
        target.save()
    TrainingRun.objects.create(
        task=task, target=newer, state="done",
        options={"weights": {"round1": 1.0}, "base": starter.source},
    )  # fmt: skip
    assert find_training_sources(accepted_model(task, kind="target", target=starter)) == {"seed"}
    assert find_training_sources(accepted_model(task, kind="target", target=newer)) == {
        "seed",
        "round1",
    }
