"""Trainings in the API: asked for, followed, and used as on the owners' pages."""

import pytest
from django_q.models import OrmQ

from evaluation.isolation.queue import leases
from evaluation.models import TrainingRun
from tasks.models import Round, TargetModel, Task, TaskMember
from tests.support.api_writing import error
from tests.support.factories import RoundFactory
from tests.support.query_counts import check, count
from tests.support.roles import refused
from tests.support.training_data import nli_task, release
from tests.support.training_pages import REPORT, done

URL = "/api/v1/tasks/nli/trainings/"
ASKED = {"weights": {"round1": 2}}


@pytest.fixture
def task(alice, tmp_path):
    task = nli_task(tmp_path)
    TaskMember.objects.create(task=task, user=alice, role="editor")
    release(task.rounds.get(), (10, 5, 5))
    return task


@pytest.fixture
def run(task):
    return TrainingRun.objects.create(
        task=task, options={"weights": {"round1": 1.0}, "base": "/srv/secret"}
    )


@pytest.mark.parametrize("role", [None, "reviewer", "editor"])
def test_only_editors_know_of_trainings(bobs, bob, run, role):
    if role:
        TaskMember.objects.create(task=run.task, user=bob, role=role)
    may = role == "editor"
    one = f"{URL}{run.pk}/"
    assert bobs.get(URL).status_code == bobs.get(one).status_code == (200 if may else refused(role))
    assert bobs.post(URL, {}).status_code == (422 if may else refused(role))
    assert bobs.post(f"{one}target/", {}).status_code == (422 if may else refused(role))


def test_without_an_account_or_the_scope_nothing_is_trained(anybody, api_of, alice, run):
    assert anybody.get(URL).status_code == 401
    client = api_of(alice, "read", "annotate", "submit")
    error(client.post(URL, ASKED), 403, "scope")
    error(client.post(f"{URL}{run.pk}/target/", {"round": 2}), 403, "scope")
    assert TrainingRun.objects.count() == 1


def test_a_training_is_asked_for(api, alice, task):
    reply = api.post(URL, {"weights": {"round1": 2, "seed": 0}, "seed": 3, "epochs": 1})
    assert reply.status_code == 202
    told, run = reply.json(), TrainingRun.objects.get()
    assert (told["id"], told["state"], told["weights"]) == (run.pk, "queued", {"round1": 2.0})
    assert (told["progress"], told["target"], told["round"]) == (0, None, None)
    assert (run.requested_by, run.options["seed"], run.options["epochs"]) == (alice, 3, 1)
    assert run.options["base"] == TargetModel.objects.get().source  # the current target
    assert OrmQ.objects.count() == 1
    assert api.get(URL).json()["results"] == [told]


@pytest.mark.parametrize("base", [None, "tiny"])
def test_what_it_starts_from(api, task, base):
    assert api.post(URL, {**ASKED, "base": base}).status_code == 202
    expected = TargetModel.objects.get().source if base else ""
    assert TrainingRun.objects.get().options["base"] == expected


def test_one_key_trains_once(api, task):
    for _ in range(2):
        reply = api.post(URL, ASKED, HTTP_IDEMPOTENCY_KEY="k")
        assert reply.status_code == 202
    assert TrainingRun.objects.count() == 1
    assert "already training" in error(api.post(URL, ASKED), 409, "training")["message"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"weights": {"round1": -1}}, "weights.round1"),
        ({"weights": {"round1": 101}}, "weights.round1"),
        ({"weights": {"round1": "many"}}, "weights.round1"),
        ({"weights": {"round1": "nan"}}, "weights.round1"),
        ({"weights": {"round 1": 1}}, "weights"),
        ({"weights": [1]}, "weights"),
        ({"weights": None}, "weights"),
        ({"base": "/etc"}, "base"),
        ({"base": "a\0"}, "base"),
        ({"seed": 2**31}, "seed"),
        ({"epochs": 0}, "epochs"),
    ],
)
def test_what_cannot_be_asked_for(api, task, changes, field):
    found = error(api.post(URL, {**ASKED, **changes}), 422, "invalid")
    assert set(found["fields"]) == {field}
    assert not TrainingRun.objects.exists()


def test_half_a_character_is_not_said_again(api, task):
    body = '{"weights": {"\\ud800": "many"}}'
    reply = api.post(URL, body, content_type="application/json")
    assert set(error(reply, 422, "invalid")["fields"]) == {"weights"}


def test_a_wrong_base_is_answered_with_the_right_ones(api, task):
    found = error(api.post(URL, {**ASKED, "base": "other"}), 422, "invalid")
    assert found["fields"]["base"][0].endswith("There are: tiny.")


@pytest.mark.parametrize("weights", [{}, {"round1": 0}, {"round9": 1}, {"round2": 1}])
def test_what_the_service_refuses(api, task, weights):
    RoundFactory(task=task, number=2, state="closed")
    assert error(api.post(URL, {"weights": weights}), 409, "training")
    assert not TrainingRun.objects.exists()


def test_a_training_is_followed_to_its_report(api, run):
    mine = leases.claim_job(TrainingRun, run.pk)
    leases.write_heartbeat(mine, 0.25, "epoch 1")
    told = api.get(f"{URL}{run.pk}/").json()
    assert (told["state"], told["progress"], told["message"]) == ("running", 0.25, "epoch 1")
    assert (told["report"], told["finished_at"]) == (None, None)
    leases.finish_job(mine, report=REPORT)
    reply = api.get(f"{URL}{run.pk}/")
    report = reply.json()["report"]
    assert reply.json()["state"] == "done"
    assert (report["base"], report["old"], report["training"]["best_epoch"]) == ("tiny", "tiny", 1)
    assert report["sources"] == REPORT["sources"]
    assert report["tests"] == REPORT["tests"]
    assert not [words for words in ("/nowhere", "/srv/secret") if words in reply.text]


def test_a_failed_training_says_why(api, run):
    leases.fail_job(leases.claim_job(TrainingRun, run.pk), "There are no rows.")
    told = api.get(f"{URL}{run.pk}/").json()
    assert (told["state"], told["error"], told["report"]) == ("failed", "There are no rows.", None)


@pytest.mark.parametrize("name", ["", "fresh"])
def test_the_model_becomes_a_target(api, run, name):
    done(run)
    url = f"{URL}{run.pk}/"
    told = api.post(f"{url}target/", {"round": 2, **({"name": name} if name else {})}).json()
    assert (told["target"], told["round"]) == (name or "nli-round-2", 2)
    assert run.task.rounds.get(number=2).target_names == [told["target"]]
    assert api.get(url).json() == told
    assert api.get(URL).json()["results"][0]["target"] == told["target"]


@pytest.mark.parametrize("asked", [{"round": 1}, {"round": 3}, {"round": 2, "name": "tiny"}])
def test_a_target_that_cannot_be(api, run, asked):
    done(run)
    assert error(api.post(f"{URL}{run.pk}/target/", asked), 409, "training")
    assert (TargetModel.objects.count(), Round.objects.count()) == (1, 1)


def test_only_a_finished_training_has_a_model(api, run):
    reply = api.post(f"{URL}{run.pk}/target/", {"round": 2})
    assert error(reply, 409, "training")
    for asked in ({}, {"round": None}, {"round": 2**31}, {"round": 2, "name": "a b"}, []):
        assert api.post(f"{URL}{run.pk}/target/", asked).status_code == 422


def test_a_training_of_another_task_is_not_there(api, run):
    other = Task.objects.create(code="other", name="Other", config_text=run.task.config_text)
    TrainingRun.objects.filter(pk=run.pk).update(task=other)
    for pk in (run.pk, 10**30):
        assert api.get(f"{URL}{pk}/").status_code == 404
        assert api.post(f"{URL}{pk}/target/", {"round": 2}).status_code == 404


def test_query_count(as_alice, run):
    done(run)
    url = "/api/v1/tasks/nli/trainings/"
    few = count(as_alice, url)
    for number in range(2, 9):
        made = RoundFactory(task=run.task, number=number, state="closed")
        target = TargetModel.objects.create(task=run.task, name=f"t{number}", source="somewhere")
        TrainingRun.objects.create(task=run.task, options=run.options, target=target, round=made)
    assert count(as_alice, url) == few
    check("API trainings", few)
