"""One short evaluation at a time, however many ask for it or claim it at the same instant."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest

from core.errors import Refused
from evaluation.isolation.queue.leases import claim_job
from evaluation.jobs import evaluate_short
from evaluation.models import ShortEvaluation, Submission
from tests.support.chat_models import CALL, _asks_this_machine, server  # noqa: F401
from tests.support.factories import TaskFactory, UserFactory
from tests.support.short_evaluations import asked_premises, open_set, paid_model, requested

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def model(server):
    task = TaskFactory(code="nli")
    open_set(task)
    return paid_model(task, UserFactory(), server)


def request_one(model):
    try:
        return requested(Submission.objects.get(pk=model.pk), half_width=0.005).pk
    except Refused as refused:
        return refused.code


def test_many_tabs_request_one(model, at_once):
    assert sorted(map(str, at_once(request_one, [model] * 6)))[-5:] == ["under_way"] * 5
    assert ShortEvaluation.objects.count() == 1


def test_many_workers_claim_and_ask_once(model, server, at_once):
    evaluation = requested(model, half_width=0.005)
    at_once(evaluate_short, [evaluation.pk] * 4)
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.asked) == ("done", 60)
    assert len(asked_premises(server)) == len(set(asked_premises(server))) == 60
    model.refresh_from_db()
    assert model.spent == pytest.approx(65 * CALL)


def test_one_of_many_claims_succeeds(model, at_once):
    evaluation = requested(model)
    claims = at_once(lambda _: claim_job(ShortEvaluation, evaluation.pk), range(6))
    assert sum(claim is not None for claim in claims) == 1
