"""Who is told that a model's labels look exchanged."""

from pathlib import Path

import pytest

from evaluation.contract import Ending, EvaluationResult, Outcome, Usage
from evaluation.models import EvaluationSet
from evaluation.runs import services as runs
from evaluation.runs.execute import store_outcome
from evaluation.scoring.exchanged import EXCHANGED_WARNING
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import TaskFactory, UserFactory


@pytest.fixture
def task(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return TaskFactory()


@pytest.mark.parametrize(
    ("answers_public", "access", "in_the_loop", "is_told"),
    [
        (True, "scoring", False, True),
        (True, "standard", False, True),
        (False, "scoring", False, False),  # one more bit of its secret answers
        (True, "hidden", False, False),
        (True, "scoring", True, False),  # its examples were written to make it wrong
    ],
)
def test_it_is_told_only_where_the_right_answers_are_public(
    task, tmp_path: Path, answers_public: bool, access: str, in_the_loop: bool, is_told: bool
) -> None:
    version = set_version(task, "some", answers_public=answers_public)
    EvaluationSet.objects.filter(pk=version.evaluation_set_id).update(access=access)
    run = queued_run(accepted_model(task, UserFactory(), name="m"), version)
    type(run).objects.update(in_the_loop=in_the_loop)
    predictions = tmp_path / "answers"
    predictions.write_bytes(b"")
    found = EvaluationResult(
        Ending(Outcome.OK, Usage(1.0)), "docker", (), predictions, exchanged={"a": "b", "b": "a"}
    )
    store_outcome(runs.claim_next_run(), found)
    run.refresh_from_db()
    assert (EXCHANGED_WARNING in run.warnings) == is_told
    assert any("a → b" in warning for warning in run.warnings) == is_told
