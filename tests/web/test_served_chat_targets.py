"""Chat models that our own model server runs are evaluated there, and fail nowhere else."""

# ruff: noqa: F811  (fixtures are named where they are used)

from dataclasses import replace

import pytest

from evaluation.contract import Outcome
from evaluation.isolation.sandbox.limits import CHAT_CALL_LIMITS
from evaluation.models import EvaluationRun, Submission
from evaluation.runs.execute import execute_run
from evaluation.runs.services import claim_next_run, request_missing_runs
from tasks.models import TargetModel
from tests.support.chat_models import (  # noqa: F401
    _asks_this_machine,
    server,
)
from tests.support.factories import RoundFactory, TaskFactory
from tests.support.made_sets import make_set

pytestmark = pytest.mark.django_db(transaction=True)  # what calls cost is noted by their threads


@pytest.fixture
def task(monkeypatch):
    """Nobody waits between two tries of a call."""
    patient = replace(CHAT_CALL_LIMITS, longest_wait_seconds=0.0)
    monkeypatch.setattr("evaluation.runs.runners.CHAT_CALL_LIMITS", patient)
    return RoundFactory(task=TaskFactory(code="nli")).task


@pytest.fixture(params=["package:llm-ours", "models/a-folder"])
def target(task, request):
    return TargetModel.objects.create(
        task=task, name="m", adapter="openai_chat", source=request.param
    )


def evaluated(task):
    """As the sweep asks for it, and workers do it."""
    request_missing_runs()
    while run := claim_next_run():
        execute_run(run)
    return EvaluationRun.objects.filter(submission__task=task)


def test_a_language_model_of_a_fresh_site_is_evaluated(task, target, server, settings):
    settings.MODEL_SERVER_URL = server.url.removesuffix("/v1")
    make_set(task, "closed")  # whose inputs never leave the site
    runs = evaluated(task)
    assert Submission.objects.get().target == target
    assert {run.outcome for run in runs} == {Outcome.OK}, [run.error for run in runs]
    assert server.seen


def test_it_waits_for_a_model_server_that_is_away(task, target, settings):
    settings.MODEL_SERVER_URL = "http://127.0.0.1:9"
    make_set(task, "closed")
    runs = evaluated(task)
    plain = runs.get(suite="plain")
    assert (plain.state, plain.outcome) == (EvaluationRun.State.QUEUED, "")
    assert plain.away_since
