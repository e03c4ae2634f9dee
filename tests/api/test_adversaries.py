"""The API of a task's adversaries."""

import pytest
from rest_framework.test import APIClient

from dynabench.adversaries.models import Adversary, AdversaryRun
from tasks.models import TaskMember
from tests.support.adversaries import SENTENCES, sentiment_round, work_on
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/tasks/sentiment/adversaries/"
NEW = {"kind": "search", "name": "Typos", "options": {"sentences": SENTENCES, "words": False}}


@pytest.fixture
def scene():
    round, owner = sentiment_round()
    api = APIClient()
    api.force_authenticate(owner)
    return round, api


def test_an_adversary_is_made_run_and_read(scene):
    _round, api = scene
    made = api.post(ADDRESS, NEW, format="json")
    assert made.status_code == 201
    one = f"{ADDRESS}{made.json()['id']}/"
    assert made.json()["options"]["beam"] == 1
    started = api.post(f"{one}runs/")
    assert (started.status_code, started.json()["state"]) == (201, "queued")
    run = work_on(AdversaryRun.objects.get())
    (listed,) = api.get(f"{one}runs/").json()["results"]
    assert (listed["number"], listed["ended_by"], listed["calls"]) == (1, "finished", run.calls)
    tries = api.get(f"{one}tries/").json()["results"]
    assert len(tries) == run.logged_tries.count()
    (stored,) = [row for row in tries if row["state"] == "stored"]
    assert stored["example"]
    assert stored["outputs"][0]["prob"]["positive"] == pytest.approx(0.2)


def test_a_run_is_stopped_once(scene):
    _round, api = scene
    one = f"{ADDRESS}{api.post(ADDRESS, NEW, format='json').json()['id']}/"
    api.post(f"{one}runs/")
    assert api.post(f"{one}runs/").json()["error"]["code"] == "running"
    assert api.delete(f"{one}runs/").json()["state"] == "cancelled"
    assert api.delete(f"{one}runs/").json()["error"]["code"] == "idle"


def test_nightly_runs_and_retirement(scene):
    _round, api = scene
    one = f"{ADDRESS}{api.post(ADDRESS, NEW, format='json').json()['id']}/"
    assert api.patch(one, {"is_nightly": True}, format="json").json()["is_nightly"]
    assert api.delete(one).status_code == 204
    assert api.get(one).json()["retired_at"]
    assert api.post(f"{one}runs/").status_code == 409


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "unknown"}, "kind"),
        ({"options": {"speed": 3}}, "options"),
        ({"options": {"sentences": SENTENCES, "share": 90}}, "options"),
        ({"max_calls": 0}, "max_calls"),
        ({"max_examples": 100_000}, "max_examples"),
        ({"max_cost": -1}, "max_cost"),
        ({"name": ""}, "name"),
    ],
)
def test_what_is_wrong_is_refused_at_its_field(scene, change, field):
    _round, api = scene
    refused = api.post(ADDRESS, NEW | change, format="json")
    assert refused.status_code == 422
    assert field in refused.json()["error"]["fields"]
    assert not Adversary.objects.exists()


@pytest.mark.parametrize("role", ["reviewer", "viewer", "judge", "annotator"])
def test_others_reach_nothing(scene, role):
    round, api = scene
    one = f"{ADDRESS}{api.post(ADDRESS, NEW, format='json').json()['id']}/"
    member = UserFactory()
    TaskMember.objects.create(task=round.task, user=member, role=role)
    api.force_authenticate(member)
    for address in (ADDRESS, one, f"{one}runs/", f"{one}tries/"):
        assert api.get(address).status_code == 403
    assert api.post(f"{one}runs/").status_code == 403
    assert api.delete(one).status_code == 403
    assert not AdversaryRun.objects.exists()
