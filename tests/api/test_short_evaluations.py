"""Short evaluations by the API: requested, shown to whom they may be, cancelled."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest

from evaluation.contract import Outcome
from evaluation.models import EvaluationSet, ShortEvaluation, Submission
from evaluation.submissions.services import withdraw_model
from tasks.models import TaskMember
from tests.support.api_models import task  # noqa: F401
from tests.support.chat_models import CALL, _asks_this_machine, server  # noqa: F401
from tests.support.short_evaluations import open_set, paid_model, requested, worked_short
from tests.support.submissions import scored, url_of

State = Submission.State


@pytest.fixture
def version(task):
    return open_set(task)


@pytest.fixture
def model(task, alice, server, version):
    return paid_model(task, alice, server)


def test_editors_may_have_one_on_a_sealed_set_and_others_do_not_see_it(
    task, alice, bob, server, api_of
):
    open_set(task, "secret", answers_public=False)
    TaskMember.objects.create(task=task, user=bob, role="owner")
    model = paid_model(task, bob, server)
    evaluation = worked_short(requested(model, "secret"))
    assert evaluation.outcome == Outcome.OK
    Submission.objects.update(is_published=True)
    url = f"/api/v1/models/{model.pk}/short-evaluations/"
    assert len(api_of(bob).get(url).json()["results"]) == 1
    assert api_of(alice).get(url).json()["results"] == []
    assert api_of(alice).get(f"{url}{evaluation.pk}/").status_code == 404
    EvaluationSet.objects.update(answers_public=True)
    (shown,) = api_of(alice).get(url).json()["results"]
    assert shown["spent"] is shown["full_cost"] is shown["most_cost"] is None


def test_models_that_cannot_be_told_apart_are_named(task, alice, version, model, client, api_of):
    values = {"near": 0.65, "far": 0.2, "private": 0.66, "anonymous": 0.67}
    for name, value in values.items():
        other = Submission.objects.create(
            task=task, owner=alice, kind="hub", name=name, state=State.DONE,
            is_published=name != "private",
            anonymous_until="2999-01-01" if name == "anonymous" else None,
        )  # fmt: skip
        scored(other, version, accuracy=value)
    worked_short(requested(model, half_width=0.1))
    (shown,) = api_of(alice).get(f"/api/v1/models/{model.pk}/short-evaluations/").json()["results"]
    names = {close["name"] for close in shown["close_models"]}
    assert "near" in names
    assert names.isdisjoint({"far", "private", "anonymous"})
    assert len(names) == 2
    assert shown["full_cost"] == pytest.approx(60 * CALL)
    client.force_login(alice)
    page = client.get(url_of(model)).text
    assert "short-list" in page


def test_it_is_no_score(model, api_of, alice, client):
    worked_short(requested(model))
    assert api_of(alice).get(f"/api/v1/models/{model.pk}/scores/").json()["results"] == []
    client.force_login(alice)
    client.post(url_of(model, "publish/"))
    model.refresh_from_db()
    assert not model.is_published


def test_by_the_api(model, alice, bob, api_of):
    url = f"/api/v1/models/{model.pk}/short-evaluations/"
    body = {"evaluation_set": "open", "half_width": 0.1}
    assert api_of(bob).post(url, body, format="json").status_code == 404
    made = api_of(alice).post(url, body, format="json")
    assert made.status_code == 201
    assert api_of(alice).post(url, body, format="json").status_code == 409
    cancelled = api_of(alice).post(f"{url}{made.json()['id']}/cancel/")
    assert cancelled.json()["state"] == "cancelled"
    assert api_of(alice).post(f"{url}{made.json()['id']}/cancel/").status_code == 409
    in_full = api_of(alice).post(f"/api/v1/models/{model.pk}/evaluate-in-full/")
    assert in_full.json()["chat"]["short_only"] is False


def test_a_withdrawn_model_shows_none(model, alice, api_of):
    evaluation = requested(model)
    withdraw_model(submission=model, actor=alice)
    assert ShortEvaluation.objects.get(pk=evaluation.pk).state == State.CANCELLED
    url = f"/api/v1/models/{model.pk}/short-evaluations/"
    assert api_of(alice).get(url).json()["results"] == []
    body = {"evaluation_set": "open", "half_width": 0.1}
    assert api_of(alice).post(url, body, format="json").status_code == 409
