"""A hub, a registry or an endpoint that is away fails no model: it is waited for, at no cost."""

# ruff: noqa: F811  (fixtures are named where they are used)

import io
import json
import time
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import SimpleNamespace

import huggingface_hub.constants
import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.utils import timezone

from core.errors import Unavailable
from evaluation.contract import Ending, Outcome, Usage
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.subprocess_job import report_work
from evaluation.isolation.sandbox import images
from evaluation.isolation.sandbox.images import ImageRefused, RegistryAway, build_pull_error
from evaluation.jobs import check_submission
from evaluation.models import EvaluationRun, Submission
from evaluation.runs.execute import execute_run
from evaluation.runs.services import claim_next_run
from evaluation.submissions import intake
from evaluation.submissions.emails import send_end_emails
from evaluation.submissions.kinds import image as image_kind
from evaluation.submissions.progress import describe_progress
from evaluation.submissions.services import cancel_evaluations, find_remaining_quota, submit_model
from serving import hub as hub_rules
from serving.errors import MisconfiguredError
from serving.hub import HubUnavailableError
from serving.spec import ModelSpec, fetch_model
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.made_sets import (
    make_set,
    task,  # noqa: F401
)

State = Submission.State
COMMIT = "0123456789abcdef0123456789abcdef01234567"
IMAGE = f"registry.example/model@sha256:{'ab' * 32}"
HANGS, DROPS = "hangs", "drops"


@contextmanager
def hub_that(answer):
    """The address of a hub that answers each request alike.

    answer: HANGS, DROPS, or the status and the headers of an error, as the hub names it.
    """
    over = Event()

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self):
            if answer == HANGS:
                over.wait(30)
            if answer in (HANGS, DROPS):
                self.close_connection = True
                return
            status, headers = answer
            self.send_response(status)
            for name, value in (headers | {"Content-Length": "0"}).items():
                self.send_header(name, value)
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            over.set()
            server.shutdown()


def asks(monkeypatch, address):
    """Let the hub's client ask there, with little patience."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    for module in ("hf_api", "_snapshot_download"):
        monkeypatch.setattr(f"huggingface_hub.{module}.constants.ENDPOINT", address)
    monkeypatch.setattr(hub_rules, "REQUEST_SECONDS", 0.3)
    monkeypatch.setattr("evaluation.runs.hub.REQUEST_SECONDS", 0.3)


def hub_model(task, alice):
    return submit_model(
        task=task, owner=alice, kind="hub", name="Mine", source="org/name", revision=COMMIT
    )


def checked(submission):
    check_submission(submission.pk)
    submission.refresh_from_db()
    return submission


AWAY = {
    "server error": (503, {}),
    "rate limit": (429, {"Retry-After": "9"}),
    "timeout of a proxy": (504, {}),
    "hangs": HANGS,
    "drops": DROPS,
}
NO = {
    "no such model": (404, {"X-Error-Code": "RepoNotFound"}),
    "private": (401, {"X-Error-Code": "RepoNotFound"}),
    "gated": (403, {"X-Error-Code": "GatedRepo"}),
    "no such commit": (404, {"X-Error-Code": "RevisionNotFound"}),
    "forbidden": (403, {}),
}


@pytest.mark.parametrize("answer", AWAY.values(), ids=AWAY)
def test_a_hub_that_is_away_is_waited_for(task, alice, monkeypatch, answer):
    with hub_that(answer) as address:
        asks(monkeypatch, address)
        submission = checked(hub_model(task, alice))
    assert (submission.state, submission.outcome) == (State.QUEUED, "")
    assert submission.not_before > timezone.now()
    assert "hub" in submission.message
    assert submission.message in describe_progress(submission, []).message


def test_a_hub_where_nobody_listens_is_away(task, alice, monkeypatch):
    asks(monkeypatch, "http://127.0.0.1:9")
    assert checked(hub_model(task, alice)).state == State.QUEUED


@pytest.mark.parametrize("answer", NO.values(), ids=NO)
def test_a_definite_no_is_the_submitters(task, alice, monkeypatch, answer):
    with hub_that(answer) as address:
        asks(monkeypatch, address)
        submission = checked(hub_model(task, alice))
    assert (submission.state, submission.outcome) == (State.FAILED, "rejected")
    assert "org/name" in submission.error


@pytest.mark.parametrize("answer", [(503, {}), (429, {}), DROPS], ids=["503", "429", "drops"])
def test_a_target_of_a_hub_that_is_away_is_loaded_later(monkeypatch, answer, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    real = SimpleNamespace(sleep=lambda _: None, time=time.time)
    monkeypatch.setattr("huggingface_hub.utils._http.time", real)  # it waits between its tries
    with hub_that(answer) as address:
        asks(monkeypatch, address)
        with pytest.raises(HubUnavailableError) as caught:
            fetch_model(ModelSpec("mine", "org/name", COMMIT))
    assert caught.value.status == 503


def test_a_site_that_asks_no_hub_says_so():
    with pytest.raises(MisconfiguredError, match="HF_HUB_OFFLINE"):
        fetch_model(ModelSpec("mine", "org/nowhere", COMMIT))


def test_who_waits_for_others_waits_longer_each_time_and_a_day_at_most(task, alice, monkeypatch):
    asks(monkeypatch, "http://127.0.0.1:9")
    submission = hub_model(task, alice)
    delays = []
    for away in (timedelta(0), timedelta(minutes=10), timedelta(hours=9)):
        since = timezone.now() - away if away else None
        Submission.objects.update(not_before=None, away_since=since)
        submission = checked(submission)
        delays.append(round((submission.not_before - timezone.now()) / timedelta(minutes=1)))
    assert delays == [1, 10, 60]
    assert submission.attempts == 0

    Submission.objects.update(not_before=None, away_since=timezone.now() - timedelta(days=1))
    submission = checked(submission)
    assert (submission.state, submission.outcome) == (State.FAILED, Outcome.AWAY)
    assert describe_progress(submission, []).phase == "failed"


@pytest.mark.parametrize("outcome", [Outcome.AWAY, Outcome.INFRASTRUCTURE])
def test_what_others_failed_costs_nothing_and_the_mail_says_so(task, alice, settings, outcome):
    settings.SUBMISSIONS_PER_DAY = settings.REFUSED_SUBMISSIONS_PER_DAY = 1
    submission = hub_model(task, alice)
    assert find_remaining_quota(alice, task).left == 0
    ended = {"state": State.FAILED, "error": "The hub is away.", "finished_at": timezone.now()}
    Submission.objects.filter(pk=submission.pk).update(outcome=outcome, **ended)
    assert find_remaining_quota(alice, task).left == 1
    assert send_end_emails() == 1
    told = mail.outbox[0].body
    assert "The hub is away." in told

    Submission.objects.filter(pk=submission.pk).update(outcome=Outcome.REJECTED, told_at=None)
    assert find_remaining_quota(alice, task).left == 0
    send_end_emails()
    refused = mail.outbox[1].body
    assert told.splitlines()[0] != refused.splitlines()[0]
    assert told.splitlines()[4] != refused.splitlines()[4]


def test_who_cancels_while_others_are_away_pays_nothing(task, alice, settings, monkeypatch):
    settings.SUBMISSIONS_PER_DAY = settings.REFUSED_SUBMISSIONS_PER_DAY = 1
    asks(monkeypatch, "http://127.0.0.1:9")
    submission = checked(hub_model(task, alice))
    cancel_evaluations(submission=submission, actor=alice)
    assert find_remaining_quota(alice, task).left == 1


class Runner:
    """Ends as it is told to."""

    name = "endpoint"

    def __init__(self, outcome):
        self.outcome = outcome

    def run(self, model, inputs, limits, *, take, beat):
        return Ending(self.outcome, Usage(1.0), "The endpoint is away. It answers 503.")


def test_an_endpoint_that_is_away_at_the_check_is_waited_for(task, alice, monkeypatch):
    make_set(task, "asked", may_leave=True)
    monkeypatch.setattr(intake, "_choose_runner", lambda *_: Runner(Outcome.AWAY))
    submission = submit_model(
        task=task, owner=alice, kind="endpoint", name="Mine", source="https://example.org"
    )
    assert checked(submission).state == State.QUEUED
    assert submission.away_since


@pytest.fixture
def run(task, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    version = set_version(task)
    return queued_run(accepted_model(task), version)


def worked(run, monkeypatch, error=None, answers=0):
    def evaluated(*_):
        if error:
            raise error
        ending = Ending(Outcome.AWAY, Usage(1.0, answers=answers), "It answers 503.")
        return type("Found", (), {"ending": ending})

    monkeypatch.setattr("evaluation.runs.execute.evaluate_run", evaluated)
    execute_run(claim_next_run())
    run.refresh_from_db()
    return run


@pytest.mark.parametrize(
    "error",
    [
        None,
        HubUnavailableError("The hub sleeps."),
        RegistryAway("The registry does not answer."),
        Unavailable("The store of files does not answer.", code="storage"),
    ],
    ids=["endpoint", "hub", "registry", "bucket"],
)
def test_a_run_waits_for_what_is_away(run, monkeypatch, error):
    run = worked(run, monkeypatch, error)
    assert (run.state, run.outcome, run.attempts) == (State.QUEUED, "", 0)
    assert run.message
    assert run.not_before > timezone.now()


def test_a_run_that_others_failed_for_a_day_costs_nothing_and_may_be_repeated(run, monkeypatch):
    EvaluationRun.objects.update(away_since=timezone.now() - leases.MAX_AWAY_TIME)
    run = worked(run, monkeypatch)
    assert (run.state, run.outcome) == (State.FAILED, Outcome.AWAY)
    assert run.may_repeat
    alone, ours = describe_progress(run.submission, [run]), describe_progress(run.submission, [])
    assert alone.phase == "failed"
    assert alone.sentence != ours.sentence


def test_a_server_that_answers_a_part_each_time_is_asked_three_times(run, monkeypatch):
    """Its calls may cost its owner money."""
    for _ in range(leases.MAX_ATTEMPTS):
        assert run.state == State.QUEUED
        EvaluationRun.objects.update(not_before=None)
        run = worked(run, monkeypatch, answers=5)
    assert (run.state, run.outcome) == (State.FAILED, Outcome.AWAY)


FAILS = [
    'Get "https://registry.invalid/v2/": dial tcp: lookup registry.invalid: no such host',
    'Get "https://registry.example/v2/": net/http: TLS handshake timeout',
    "dial tcp 192.0.2.1:443: connect: connection refused",
    "received unexpected HTTP status: 503 Service Unavailable",
    "toomanyrequests: You have reached your unauthenticated pull rate limit.",
    "unexpected EOF",
    "something that nobody knows",
]
REFUSES = [
    "manifest unknown: manifest unknown",
    "pull access denied for model, repository does not exist or may require 'docker login': denied",
    "unauthorized: authentication required",
    "no matching manifest for linux/amd64 in the manifest list entries",
    "failed to resolve reference: registry.example/model@sha256:ab: not found",
]


@pytest.mark.parametrize("said", FAILS)
def test_a_registry_that_fails_is_away(said):
    assert isinstance(build_pull_error("registry.example/model", said), RegistryAway)


@pytest.mark.parametrize("said", REFUSES)
def test_a_registrys_no_is_the_submitters(said):
    assert isinstance(build_pull_error("registry.example/timeout", said), ImageRefused)


def test_an_image_waits_for_its_registry(task, alice, monkeypatch):
    def away(*_):
        raise RegistryAway("The registry does not answer.")

    monkeypatch.setattr(image_kind, "has_engine", lambda: True)
    monkeypatch.setattr(images, "pull_image", away)
    image = submit_model(task=task, owner=alice, kind="image", name="Mine", source=IMAGE)
    assert checked(image).state == State.QUEUED
    assert image.away_since


def test_an_image_waits_for_an_engine_that_went_meanwhile(task, alice, monkeypatch):
    engines = [True, False]

    def gone(*_):
        raise ConnectionError("the engine went")

    for module in (image_kind, intake):
        monkeypatch.setattr(module, "has_engine", lambda: engines.pop(0))
    monkeypatch.setattr(images, "pull_image", gone)
    image = submit_model(task=task, owner=alice, kind="image", name="Mine", source=IMAGE)
    image = checked(image)
    assert (image.state, image.attempts) == (State.QUEUED, 0)


def test_a_training_waits_for_the_hub_that_has_its_base():
    def work(_):
        raise HubUnavailableError("The hub sleeps.")

    out = io.StringIO()
    report_work(out, work, ())
    assert json.loads(out.getvalue()) == {"away": "The hub sleeps."}


def test_a_target_of_a_hub_that_is_away_is_not_added(task, monkeypatch):
    asks(monkeypatch, "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.utils._http.time", SimpleNamespace(sleep=lambda _: None))
    with pytest.raises(CommandError, match="hub"):
        call_command("add_target", task.code, f"org/name@{COMMIT}", name="far")
    assert not task.targets.exists()
