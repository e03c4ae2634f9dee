"""A training that has ended."""

import pytest

from evaluation.models import TrainingRun
from tasks.models import TaskMember
from tests.support.training_data import nli_task, release

State = TrainingRun.State

RATE = {"value": 0.5, "low": 0.25, "high": 0.75, "n": 20, "method": "wilson"}

REPORT = {
    "labels": ["entailment", "neutral", "contradiction"],
    "old": "tiny",
    "old_missing": "",
    "base": "tiny",
    "seed": 0,
    "folder": "/nowhere",
    "sources": [
        {"name": "seed", "dataset": None, "weight": None, "train": 0, "dev": 0, "test": 5,
         "left_out": 0},
    ],
    "training": {"curve": [{"loss": 0.5, "accuracy": 0.25}], "best_epoch": 1},
    "tests": [
        {"name": "round1", "before": {**RATE, "value": 0.4}, "after": RATE, "mended": 0,
         "broken": 3, "p": 0.25,
         "examples": [{"inputs": {"premise": "Rain <b>", "hypothesis": "Sun"},
                       "expected": "contradiction", "before": "neutral", "after": "contradiction"}]}
    ],
}  # fmt: skip


@pytest.fixture
def task(alice, tmp_path):
    task = nli_task(tmp_path)
    TaskMember.objects.create(task=task, user=alice, role="editor")
    release(task.rounds.get(), (10, 5, 5))
    return task


@pytest.fixture
def run(task):
    return TrainingRun.objects.create(task=task, options={"weights": {"round1": 1.0}})


def done(run, **changes):
    TrainingRun.objects.filter(pk=run.pk).update(state=State.DONE, report={**REPORT, **changes})
