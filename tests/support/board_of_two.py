"""A board of two models with a snapshot, of an open set and of a sealed one."""

import pytest

from evaluation.models import Dataset, EvaluationSet
from leaderboard.snapshots.services import take_snapshot
from tasks.models import Round
from tests.support.compared_models import rows_of
from tests.support.evaluations import (
    LABELS,
    ScriptedRunner,
    accepted_model,
    queued_run,
    run_with,
    set_version,
    without_deltas,
)
from tests.support.factories import TaskFactory
from tests.support.submissions import work_off


@pytest.fixture
def board(settings, tmp_path, monkeypatch):
    """Two models on a set whose labels a release has, and on a sealed one; a snapshot of them."""
    settings.MEDIA_ROOT = tmp_path / "media"
    task = TaskFactory(code="nli", name="Natural language inference")
    without_deltas(task)
    round = Round.objects.create(task=task, number=1, state="released")
    version = set_version(task, "round-1", rows=rows_of(60), may_leave=True)
    version.dataset = Dataset.objects.create(round=round, version=1, state="done", options={})
    version.save()
    sealed = set_version(
        task, "sealed", rows=rows_of(40), answers_public=False, access=EvaluationSet.Access.HIDDEN
    )
    for name in ("first", "second"):
        model = accepted_model(task, name=name, is_published=True)
        runner = ScriptedRunner(lambda inputs, name=name: answer(inputs, name))
        run_with(monkeypatch, runner)
        for each in (version, sealed):
            queued_run(model, each, seed=7)
        work_off()
    assert take_snapshot(task=task, actor=None).number == 1
    return version


def answer(inputs, name):
    number = int(inputs["hypothesis"].split()[1].strip("."))
    return LABELS[(number + (number % (5 if name == "first" else 3) == 0)) % 3]
