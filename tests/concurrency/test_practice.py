"""Many people start models and ask them at once."""

import threading

import pytest

from core.errors import Refused
from evaluation.models import PracticeRun
from evaluation.submissions.practice import services
from evaluation.submissions.practice.services import ask_question, record_host, start_run
from tasks.targets.endpoints.base import EndpointError
from tests.support.evaluations import accepted_model
from tests.support.factories import TaskFactory

pytestmark = pytest.mark.django_db(transaction=True)
REPEATS = range(5)


@pytest.fixture
def models(settings):
    settings.PRACTICE_MODELS = 2
    record_host("here")
    task = TaskFactory(code="nli")
    return [accepted_model(task, name=f"m{number}") for number in range(8)]


def started(model):
    try:
        return start_run(model).pk
    except Refused as refused:
        return refused.code


def test_no_more_models_run_than_there_are_slots(models, at_once):
    for _ in REPEATS:
        results = at_once(started, models)
        assert results.count("no_slot") == 6
        assert sorted(PracticeRun.objects.values_list("slot", flat=True)) == [0, 1]
        PracticeRun.objects.all().delete()


def test_many_people_start_one_model_once(models, at_once):
    for _ in REPEATS:
        assert len(set(at_once(started, [models[0]] * 8))) == 1
        assert PracticeRun.objects.count() == 1
        PracticeRun.objects.all().delete()


def test_one_question_is_answered_at_a_time(models, at_once, monkeypatch):
    run = start_run(models[0])
    PracticeRun.objects.update(state="running", lease_token=run.pk, ready_at=run.deadline_at)
    others = threading.Semaphore(0)

    def awaited(mine):
        assert all(others.acquire(timeout=60) for _ in range(7))
        return "answer"

    def asked(number):
        try:
            return ask_question(run, {"number": number})
        except EndpointError as error:
            others.release()
            return error.reason

    monkeypatch.setattr(services, "_wait_for_answer", awaited)
    assert sorted(at_once(asked, range(8))) == ["answer", *["busy"] * 7]
    assert PracticeRun.objects.get().question_id is None
