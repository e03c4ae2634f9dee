"""Machines of others: who may have one, what it gets, and what becomes of its answers."""

import json
from datetime import timedelta
from io import BytesIO
from uuid import uuid4

import pytest
from django.core.files.base import ContentFile
from django.db.models import F
from django.utils import timezone
from rest_framework.test import APIClient

from core.accounts.models import LogEntry
from core.accounts.tokens import create_token
from evaluation import jobs
from evaluation.contract import MIB
from evaluation.isolation.uploads.chunked import add_file
from evaluation.models import EvaluationRun, EvaluationSet, OwnWorker, Upload
from evaluation.runs import handed as handed_answers
from evaluation.submissions.own_workers.selectors import SECOND_WAIT_TIME
from tasks.models import TaskMember
from tests.support.api_errors import error
from tests.support.evaluations import (
    LABELS,
    ScriptedRunner,
    accepted_model,
    queued_run,
    run_with,
    set_version,
)
from tests.support.factories import TaskFactory, UserFactory

State = EvaluationRun.State
USAGE = {"seconds": 3.0, "answers": 20, "examples_per_second": 9.0}
ENDING = {"outcome": "ok", "usage": USAGE}


def client_of(user):
    client = APIClient()
    client.force_login(user)
    return client


def by_token(user):
    """A machine of theirs, with a key of its own."""
    _, key = create_token(user=user, name="machine", scopes=["submit"], days=9)
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    return client


@pytest.fixture
def task(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return TaskFactory(code="nli")


@pytest.fixture
def alice(task):
    return UserFactory(email="alice@example.com")


@pytest.fixture
def as_alice(alice):
    return client_of(alice)


@pytest.fixture
def worker(task, alice):
    return OwnWorker.objects.create(task=task, user=alice, second="nobody", takes_sealed=True)


def waiting(task, owner, name="mine", set_name="dev", **fields):
    """A run of a model whose files are kept, on a set whose inputs may leave."""
    version = set_version(task, set_name, size=20, **{"may_leave": True} | fields)
    model = accepted_model(task, owner, name, digest="d")
    model.file.save("model.tar", ContentFile(b"weights"))
    return queued_run(model, version)


def handed(client, lease, user, label="neutral", **more):
    """Answer all examples of a lease with this label and hand it in; the response."""
    inputs = b"".join(client.get(f"/api/v1/leases/{lease}/inputs/").streaming_content)
    lines = [
        json.dumps({"id": json.loads(line)["id"], "output": {"label": label}})
        for line in inputs.splitlines()
    ]
    said = "\n".join(lines).encode()
    upload = add_file(user, "answers.jsonl", len(said), BytesIO(said))
    body = {"upload": str(upload.pk), "runner": "docker", "ending": ENDING | more}
    return client.post(f"/api/v1/leases/{lease}/answers/", body, format="json")


def test_owners_say_who_may(task, alice):
    owner = UserFactory()
    TaskMember.objects.create(task=task, user=owner, role="owner")
    client, body = client_of(owner), {"email": alice.email, "second": "nobody"}
    address = "/api/v1/tasks/nli/own-workers/"
    made = client.post(address, body, format="json")
    assert (made.status_code, made.data["second"], made.data["model"]) == (201, "nobody", None)
    assert error(client.post(address, body, format="json"))["code"] == "exists"
    assert [one["email"] for one in client.get(address).data["results"]] == [alice.email]
    assert client_of(alice).get(address).status_code == 404
    assert client.delete(f"{address}{made.data['id']}/").status_code == 204
    assert client_of(alice).post("/api/v1/tasks/nli/leases/").status_code == 404
    logged = LogEntry.objects.filter(task="nli").order_by("pk").values_list("action", "data")
    told = {"user": alice.email, "second": "nobody", "sealed": False}
    assert [*logged] == [("own_worker.added", told), ("own_worker.removed", told)]


def test_a_permission_is_for_a_task_or_a_model_or_a_set(task, alice, as_alice):
    owner = UserFactory()
    TaskMember.objects.create(task=task, user=owner, role="owner")
    sealed = {"answers_public": False}
    one, other = (
        waiting(task, alice, "one", **sealed),
        waiting(task, alice, "other", "more", **sealed),
    )
    others, stays = waiting(task, UserFactory(), "others"), set_version(task, "stays")
    client, address = client_of(owner), "/api/v1/tasks/nli/own-workers/"

    def let(**which):
        body = {"email": alice.email, "takes_sealed": True} | which
        return client.post(address, body, format="json")

    def taken():
        lease = as_alice.post("/api/v1/tasks/nli/leases/")
        EvaluationRun.objects.update(state=State.QUEUED, lease_token=None)
        return lease.data["run"] if lease.data else None

    for which, field in (
        ({"model": str(one.submission_id), "evaluation_set": "more"}, "evaluation_set"),
        ({"model": str(others.submission_id)}, "model"),
        ({"evaluation_set": stays.evaluation_set.name}, "evaluation_set"),
    ):
        refused = let(**which)
        assert (refused.status_code, [*error(refused)["fields"]]) == (422, [field])
    made = let(evaluation_set="more").data["id"]
    assert taken() == str(other.pk)
    client.delete(f"{address}{made}/")
    made = let(model=str(one.submission_id)).data["id"]
    assert let(model=str(one.submission_id)).status_code == 409
    assert taken() == str(one.pk)
    client.delete(f"{address}{made}/")
    let(takes_sealed=False)
    assert taken() is None  # both sets are sealed
    assert OwnWorker.objects.get().heard_at
    EvaluationSet.objects.filter(name="more").update(answers_public=True)
    assert taken() == str(other.pk)


def test_a_machine_gets_its_peoples_models_and_inputs_that_may_leave(task, alice, as_alice, worker):
    waiting(task, UserFactory(), "another's")
    waiting(task, alice, "stays", "stays", may_leave=False)
    waiting(task, alice, "hidden", "hidden", access=EvaluationSet.Access.HIDDEN)
    run = waiting(task, alice, set_name="sealed", answers_public=True)
    assert as_alice.post("/api/v1/tasks/nli/leases/", {"model": str(uuid4())}).status_code == 204
    lease = as_alice.post("/api/v1/tasks/nli/leases/").data
    assert (lease["run"], lease["kind"], lease["examples"]) == (str(run.pk), "directory", 20)
    assert as_alice.post("/api/v1/tasks/nli/leases/").status_code == 204
    run.refresh_from_db()
    assert (run.state, str(run.lease_token)) == (State.RUNNING, lease["token"])
    EvaluationSet.objects.filter(name="sealed").update(answers_public=False)  # sealed meanwhile
    address = f"/api/v1/leases/{lease['token']}/"
    assert b"".join(as_alice.get(f"{address}model/").streaming_content) == b"weights"
    found = [b"".join(as_alice.get(f"{address}inputs/").streaming_content) for _ in range(2)]
    run.version.refresh_from_db()
    assert run.version.exposed_at is not None
    first, again = (sorted(one.splitlines()) for one in found)
    assert first == again
    assert {*json.loads(first[0])["inputs"]} == {"premise", "hypothesis"}
    assert not any(word in found[0] for word in (b"u1", b"entailment", b"gold"))
    other = client_of(UserFactory())
    assert other.get(f"{address}inputs/").status_code == 404
    EvaluationRun.objects.update(lease_until=timezone.now() + timedelta(seconds=1))
    assert as_alice.post(f"{address}keep/", {"progress": 0.5}).status_code == 204
    run.refresh_from_db()
    assert run.progress == 0.5
    assert run.lease_until > timezone.now() + timedelta(minutes=1)
    worker.delete()
    assert as_alice.post(f"{address}keep/", {"progress": 0.6}).status_code == 404


def test_what_is_handed_in_is_scored_here_and_marked(task, alice, as_alice, worker):
    run = waiting(task, alice)
    lease = as_alice.post("/api/v1/tasks/nli/leases/").data["token"]
    assert handed(as_alice, lease, alice).status_code == 204
    assert handed_again(as_alice, lease) == 404
    jobs.evaluate_next(run.pk)
    run.refresh_from_db()
    assert (run.state, run.outcome, run.runner) == (State.DONE, "ok", "own-docker"), run.error
    assert run.usage["examples_per_second"] == 9
    score = run.scores.get(metric="accuracy", slice="", kind="")
    assert (score.value, score.n) == (pytest.approx(7 / 20), 20)
    assert not Upload.objects.exists()
    assert run.handed.get().compared is None


def test_a_model_that_ended_badly_there_has_failed(task, alice, as_alice, worker):
    run = waiting(task, alice)
    lease = as_alice.post("/api/v1/tasks/nli/leases/").data["token"]
    ending = {"outcome": "oom", "usage": USAGE, "sentence": "Too large."}
    body = {"runner": "docker", "ending": ending}
    assert as_alice.post(f"/api/v1/leases/{lease}/answers/", body, format="json").status_code == 204
    jobs.evaluate_next(run.pk)
    run.refresh_from_db()
    assert (run.state, run.outcome) == (State.FAILED, "oom")


def test_a_line_without_an_end_is_never_held_whole(task, alice, as_alice, worker, monkeypatch):
    run, read, real = waiting(task, alice), [], handed_answers.read_lines
    lease = as_alice.post("/api/v1/tasks/nli/leases/").data["token"]
    upload = add_file(alice, "answers.jsonl", 3 * MIB, BytesIO(b"x" * 3 * MIB))
    body = {"upload": str(upload.pk), "runner": "docker", "ending": ENDING}
    assert as_alice.post(f"/api/v1/leases/{lease}/answers/", body, format="json").status_code == 204

    def spy(path):
        return (read.append(len(line)) or line for line in real(path))

    monkeypatch.setattr(handed_answers, "read_lines", spy)
    jobs.evaluate_next(run.pk)
    run.refresh_from_db()
    assert (run.outcome, read) == ("invalid_output", [MIB + 2]), run.error


def handed_again(client, lease):
    body = {"runner": "docker", "ending": ENDING}
    return client.post(f"/api/v1/leases/{lease}/answers/", body, format="json").status_code


@pytest.mark.parametrize(("second", "outcome"), [("neutral", "ok"), (LABELS[0], "invalid_output")])
def test_a_second_machine_must_agree_on_a_tenth(
    task, alice, as_alice, worker, monkeypatch, second, outcome
):
    OwnWorker.objects.update(second="site")
    run = waiting(task, alice)
    lease = as_alice.post("/api/v1/tasks/nli/leases/").data["token"]
    handed(as_alice, lease, alice)
    here = ScriptedRunner(lambda inputs: second)
    run_with(monkeypatch, here)
    jobs.evaluate_next(run.pk)
    run.refresh_from_db()
    assert run.outcome == outcome, run.error
    assert [len(lines) for lines in here.sent] == [2]
    assert (run.handed.get().compared, run.handed.get().differed) == (2, 2 * (outcome != "ok"))


@pytest.mark.parametrize(("label", "outcome"), [("neutral", "ok"), (LABELS[0], "invalid_output")])
def test_the_second_may_be_another_own_worker(task, alice, as_alice, worker, label, outcome):
    OwnWorker.objects.update(second="worker")
    run, leases = waiting(task, alice), "/api/v1/tasks/nli/leases/"
    first, second = by_token(alice), by_token(alice)
    lease = first.post(leases).data["token"]
    assert handed(first, lease, alice).status_code == 204
    address = f"/api/v1/uploads/{Upload.objects.get().pk}/"  # is hers no more, and takes no place
    assert as_alice.get("/api/v1/uploads/").data["results"] == []
    assert as_alice.delete(address).status_code == 404
    assert first.post(leases).status_code == 204
    jobs.evaluate_next(run.pk)  # the site waits as well
    told = second.post(leases).data
    assert (told["run"], told["examples"]) == (str(run.pk), 2)
    assert handed(second, told["token"], alice, label).status_code == 204
    assert {first.post(leases).status_code, second.post(leases).status_code} == {204}
    jobs.evaluate_next(run.pk)
    run.refresh_from_db()
    assert run.outcome == outcome, run.error
    by_first, by_second = run.handed.order_by("is_second")
    assert (by_first.compared, by_first.differed) == (2, 2 * (outcome != "ok"))
    assert by_first.token != by_second.token


@pytest.mark.parametrize("fails", [False, True])
def test_where_no_second_worker_comes_the_site_is_the_second(
    task, alice, worker, monkeypatch, fails
):
    OwnWorker.objects.update(second="worker")
    run, first, leases = waiting(task, alice), by_token(alice), "/api/v1/tasks/nli/leases/"
    lease = first.post(leases).data["token"]
    handed(first, lease, alice)
    if fails:
        second = by_token(alice)
        answers = f"/api/v1/leases/{second.post(leases).data['token']}/answers/"
        ending = {"outcome": "infrastructure", "usage": {}}
        told = second.post(answers, {"runner": "docker", "ending": ending}, format="json")
        assert (told.status_code, second.post(leases).status_code) == (204, 204)
    else:
        EvaluationRun.objects.update(not_before=F("not_before") - SECOND_WAIT_TIME)
    here = ScriptedRunner(lambda inputs: "neutral")
    run_with(monkeypatch, here)
    jobs.evaluate_next(run.pk)
    run.refresh_from_db()
    assert (run.outcome, [len(lines) for lines in here.sent]) == ("ok", [2]), run.error


def test_a_machine_that_fails_gives_the_run_back(task, alice, as_alice, worker, monkeypatch):
    run = waiting(task, alice)
    lease = as_alice.post("/api/v1/tasks/nli/leases/").data["token"]
    ending = {"outcome": "infrastructure", "sentence": "No engine.", "usage": {}}
    body = {"runner": "docker", "ending": ending}
    assert as_alice.post(f"/api/v1/leases/{lease}/answers/", body, format="json").status_code == 204
    run.refresh_from_db()
    assert (run.state, run.attempts, run.lease_token) == (State.QUEUED, 1, None)
    EvaluationRun.objects.update(not_before=None)
    lease = as_alice.post("/api/v1/tasks/nli/leases/").data["token"]
    again = as_alice.post(f"/api/v1/leases/{lease}/answers/", body, format="json")
    EvaluationRun.objects.update(not_before=None)
    assert (again.status_code, as_alice.post("/api/v1/tasks/nli/leases/").status_code) == (204, 204)
    run.refresh_from_db()
    assert (run.state, run.attempts) == (State.QUEUED, 2)  # the last try is the site's
    EvaluationRun.objects.update(attempts=0)
    lease = as_alice.post("/api/v1/tasks/nli/leases/").data["token"]
    body["ending"] = ENDING
    answers = f"/api/v1/leases/{lease}/answers/"
    wrong = as_alice.post(answers, body, format="json")
    assert (wrong.status_code, [*error(wrong)["fields"]]) == (422, ["upload"])
    for number in (-1, 1e300):
        ending = {"outcome": "oom", "usage": {"examples_per_second": number}}
        wrong = as_alice.post(answers, body | {"ending": ending}, format="json")
        fields = [*error(wrong)["fields"]]
        assert (wrong.status_code, fields) == (422, ["ending.usage.examples_per_second"])
