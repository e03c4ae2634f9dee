"""Two owners press the same button: one training, one round."""

import pytest

from evaluation.models import TrainingRun
from evaluation.training.services import TrainingRefused, register_trained_target, request_training
from tasks.models import TargetModel
from tests.support.factories import RoundFactory, TaskFactory

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = range(5)


@pytest.fixture
def task():
    task = TaskFactory(code="nli", is_official=True)
    RoundFactory(task=task)
    return task


def attempt(function, **arguments):
    try:
        return function(actor=None, **arguments)
    except TrainingRefused as refused:
        return str(refused)


def test_a_task_has_one_training_at_a_time(task, at_once):
    for _ in REPEATS:
        results = at_once(
            lambda _: attempt(request_training, task=task, weights={"seed": 1}), "1" * 8
        )
        assert sum(isinstance(result, TrainingRun) for result in results) == 1
        assert sum("already training" in str(result) for result in results) == 7
        TrainingRun.objects.all().delete()


@pytest.mark.parametrize("repeat", REPEATS)
def test_a_model_is_registered_once_and_makes_one_round(task, at_once, repeat):
    run = TrainingRun.objects.create(
        task=task,
        options={"weights": {"round1": 1}},
        state=TrainingRun.State.DONE,
        report={"folder": "a"},
    )
    names = [f"target-{number}" for number in range(8)]
    made = at_once(
        lambda name: attempt(register_trained_target, run=run, number=2, name=name), names
    )
    assert len({str(target) for target in made}) == 1
    assert TargetModel.objects.count() == 1
    assert task.rounds.get(number=2).target_names == [str(made[0])]
