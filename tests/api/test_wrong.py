"""What a model got wrong, in the API: for the same people and of the same sets as on the page."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest
from rest_framework.test import APIClient

from evaluation.models import EvaluationSet, Submission
from tests.support.api_models import (  # noqa: F401
    ROLES,
    TASK_OWNERS,
    _media,
    model,
    scored,
    task,
    url_of,
    visit_as,
)
from tests.support.api_writing import error
from tests.support.evaluations import set_version
from tests.support.factories import UserFactory
from tests.support.query_counts import check, count
from tests.support.submissions import answered, release_of

RIGHT_FIRST = ["entailment"] * 4 + ["neutral", "contradiction"]


def wrong_url(run):
    return url_of(run.submission, f"runs/{run.pk}/wrong/")


def open_run(model, name="open"):
    return model.runs.select_related("version__evaluation_set").get(
        version__evaluation_set__name=name
    )


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("release", ["none", "public", "private", "hidden"])
def test_what_was_wrong_is_for_who_may_know_what_is_right(visit_as, model, role, release):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    run = open_run(model, "sealed" if release == "hidden" else "open")
    answered(run, *RIGHT_FIRST)
    if release != "none":
        release_of(run.version, private_test=release == "private")
    reply = visit_as(role).get(wrong_url(run))
    allowed = role in TASK_OWNERS or release == "public"
    assert reply.status_code == (200 if allowed else 404)
    assert ("Person 1" in reply.text) == allowed
    assert "Person 4" not in reply.text


def test_an_example_comes_with_what_was_said_and_what_is_right(visit_as, model):
    run = open_run(model)
    answered(run, *RIGHT_FIRST)
    told = visit_as("editor").get(wrong_url(run)).json()
    assert told["next_page"] is None
    assert [one["uid"] for one in told["examples"]] == ["u1", "u2"]
    assert told["examples"][0] == {
        "uid": "u1",
        "inputs": {"premise": "Person 1 opened the shop.", "hypothesis": "Open 1."},
        "answer": "entailment",
        "gold": ["neutral"],
        "score": 0.0,
    }


def test_no_answer_is_wrong_too(visit_as, model):
    run = open_run(model)
    answered(run, None, *["neutral"] * 5)
    first = visit_as("editor").get(wrong_url(run)).json()["examples"][0]
    assert (first["uid"], first["answer"]) == ("u0", None)


def test_it_comes_in_pages(visit_as, model, monkeypatch):
    monkeypatch.setattr("evaluation.submissions.mistakes.PAGE_SIZE", 2)
    run = open_run(model)
    answered(run, *["entailment"] * 6)
    client, url = visit_as("editor"), wrong_url(run)
    seen, page = [], 1
    while page:
        told = client.get(url, {"page": page}).json()
        seen.append([one["uid"] for one in told["examples"]])
        page = told["next_page"]
    assert seen == [["u1", "u2"], ["u4", "u5"]]
    assert client.get(url, {"page": 9}).json() == {"examples": [], "next_page": None}
    for page in ("0", "x", "100000"):
        assert set(error(client.get(url, {"page": page}), 422, "invalid")["fields"]) == {"page"}


def test_of_perturbed_runs_and_of_other_models_nothing_is_told(visit_as, model, alice):
    run, client = open_run(model), visit_as("editor")
    perturbed = scored(model, run.version, suite="robustness")
    for one in (run, perturbed):
        answered(one, *RIGHT_FIRST)
    assert client.get(wrong_url(perturbed)).status_code == 404
    other = model.__class__.objects.create(task=model.task, owner=alice, name="other", kind="hub")
    assert client.get(url_of(other, f"runs/{run.pk}/wrong/")).status_code == 404
    model.withdrawn_at = model.queued_at
    model.save(update_fields=["withdrawn_at"])
    assert client.get(wrong_url(run)).status_code == 404


def test_what_became_hidden_is_not_told_any_more(visit_as, model):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    run = open_run(model)
    answered(run, *RIGHT_FIRST)
    release_of(run.version, private_test=False)
    anybody = APIClient()
    assert anybody.get(wrong_url(run)).status_code == 200
    EvaluationSet.objects.update(access="hidden")
    assert anybody.get(wrong_url(run)).status_code == 404


def test_query_count(client, model):
    run = open_run(model)
    answered(run, *RIGHT_FIRST)
    client.force_login(UserFactory(is_superuser=True))
    few = count(client, wrong_url(run))
    larger = scored(model, set_version(model.task, "larger", size=18))
    answered(larger, *["neutral"] * 18)
    assert count(client, wrong_url(larger)) == few
    check("API wrong", few)
