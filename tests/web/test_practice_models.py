"""Models that run in the sandbox while people try to fool them; the engine is scripted."""

import json
from contextlib import nullcontext
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from annotation.models import Assignment, Attempt, Example, TargetOutput
from core.errors import Refused
from core.web.throttles import REQUESTS_PER_HOUR
from evaluation.contract import Ending, Outcome, Runnable
from evaluation.isolation.queue.attempt_keys import build_container_key, is_attempt_current
from evaluation.isolation.queue.leases import claim_job, sweep_jobs
from evaluation.jobs import serve_practice
from evaluation.models import PracticeHost, PracticeRun, Submission
from evaluation.submissions.practice import serve, services
from evaluation.submissions.practice.services import record_host, start_run
from evaluation.submissions.services import withdraw_model
from tasks.models import TargetFailure
from tests.support.evaluations import accepted_model
from tests.support.practice import NEUTRAL, Engine, answer_to, scripted_engine
from tests.support.submissions import url_of
from tests.support.writing import ok
from tests.web.conftest import HTMX

KEPT = (Assignment, Attempt, Example, TargetOutput, TargetFailure)


@pytest.fixture
def model(nli):
    record_host("here")
    return accepted_model(nli.task, is_published=True)


@pytest.fixture
def engine(monkeypatch):
    """Serves a claimed run until nobody asks; then its time is over at once."""
    monkeypatch.setattr(serve, "IDLE_TIMEOUT", timedelta(0))
    return scripted_engine(monkeypatch)


@pytest.fixture
def running(model, monkeypatch):
    """A run that answers: while a page waits for an answer, the model gives it."""
    start_run(model)
    run = claim_job(PracticeRun, PracticeRun.objects.get().pk)
    talk = serve.Exchange(run, {})
    talk.says = NEUTRAL
    talk.take(answer_to(talk.get_next_line(), NEUTRAL))

    def step(seconds):
        if line := talk.get_next_line():
            talk.take(answer_to(line, talk.says))

    monkeypatch.setattr(services.time, "sleep", step)
    return talk


def form(page, text="The shop was open."):
    shown = page.context["form"].initial
    return {name: shown[name] for name in ("assignment", "goal", "attempt_key")} | {
        "hypothesis": text
    }


@pytest.mark.parametrize("kind", ["directory", "hub", "rows", "image"])
def test_a_stranger_starts_a_model_and_waits_on_its_page(model, kind):
    Submission.objects.update(kind=kind)
    client, url = Client(), url_of(model, "try/")
    assert f'action="{url}start/"' in ok(client.get(url_of(model))).text
    assert f'action="{url}start/"' in ok(client.get(url)).text
    assert client.post(f"{url}start/").url == url
    assert 'id="starting"' in ok(client.get(url)).text
    assert 'http-equiv="refresh"' in client.get(url).text
    assert 'id="starting"' in ok(client.get(f"{url}?starting", **HTMX)).text
    assert client.post(f"{url}start/").url == url  # a second wish is the same
    assert PracticeRun.objects.get().submission == model


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_the_model_answers_on_the_form_and_nothing_is_stored(model, running, headers):
    client, url = Client(), url_of(model, "try/")
    assert client.get(f"{url}?starting", **HTMX)["HX-Redirect"] == url
    said = ok(client.post(url, form(ok(client.get(url))), **headers))
    assert [answer.words for answer in said.context["answers"]] == [
        "neither definitely true nor definitely false"
    ]
    run = PracticeRun.objects.get()
    assert (run.question_id, run.question, run.answer) == (None, "", "")
    assert not any(kind.objects.exists() for kind in KEPT)


@pytest.mark.parametrize(
    "says",
    [{"output": None}, {"output": {"label": "maybe"}}, {"output": {}}, {"output": 3}],
    ids=str,
)
def test_an_answer_of_no_use_is_told_and_what_was_typed_stays(model, running, says):
    running.says = says
    client, url = Client(), url_of(model, "try/")
    failed = client.post(url, form(ok(client.get(url)), "Typed text."))
    assert failed.status_code == 503
    assert 'id="failed"' in failed.text
    assert "Typed text." in failed.text
    assert PracticeRun.objects.get().question_id is None


def test_one_question_at_a_time_and_a_slow_answer_finds_nobody(model, running, monkeypatch):
    client, url = Client(), url_of(model, "try/")
    page = ok(client.get(url))
    monkeypatch.setattr(services, "MAX_ANSWER_WAIT_SECONDS", 0)
    assert client.post(url, form(page)).status_code == 503
    line = running.get_next_line()
    assert line == b""  # who asked is gone, and so is the question
    PracticeRun.objects.update(question_id=model.pk, asked_at=timezone.now() + timedelta(hours=1))
    assert client.post(url, form(page)).status_code == 503
    assert PracticeRun.objects.get().question_id == model.pk
    with pytest.raises(serve.InvalidOutput):
        running.take(b"Loading weights")
    running.take(b"\xef\xbb\xbf")  # an empty line is no answer


def test_what_ended_meanwhile_is_started_again_and_the_text_stays(model, running):
    client, url = Client(), url_of(model, "try/")
    page = ok(client.get(url))
    PracticeRun.objects.update(state="done")
    again = client.post(url, form(page, "Typed text."))
    assert again.status_code == 503
    assert "Typed text." in again.text
    assert PracticeRun.objects.get().state == "queued"  # of the last one nothing is left


@pytest.mark.parametrize("state", ["hidden", "closed", "withdrawn", "predictions"])
def test_who_may_not_try_finds_neither_page_nor_button(model, state, as_alice):
    if state == "hidden":
        Submission.objects.update(is_published=False)
    elif state == "withdrawn":
        Submission.objects.update(withdrawn_at=timezone.now())
    elif state == "predictions":
        Submission.objects.update(kind="predictions")
    else:
        model.task.allow_try_out = False
        model.task.save()
    assert as_alice.get(url_of(model, "try/")).status_code == 404
    assert as_alice.post(url_of(model, "try/start/")).status_code == 404
    if state != "hidden":
        assert 'id="try-to-fool"' not in ok(as_alice.get(url_of(model))).text
    assert not PracticeRun.objects.exists()


def test_who_sees_a_private_model_may_try_it(model, alice, as_alice):
    Submission.objects.update(is_published=False, owner=alice)
    as_alice.post(url_of(model, "try/start/"))
    assert PracticeRun.objects.exists()


def test_without_an_engine_the_page_says_so(model, settings):
    PracticeHost.objects.update(seen_at=timezone.now() - timedelta(hours=1))
    for _ in range(2):
        for url in (url_of(model), url_of(model, "try/")):
            page = ok(Client().get(url)).text
            assert 'id="not-tried"' in page
            assert 'id="try-to-fool"' not in page
        assert Client().post(url_of(model, "try/start/")).url == url_of(model)
        record_host("here")
        settings.PRACTICE_MODELS = 0  # the operator wants none
    assert not PracticeRun.objects.exists()


def test_starts_are_tries_and_slots_are_few(model, settings):
    settings.PRACTICE_MODELS = 2
    others = [accepted_model(model.task, name=f"m{n}", is_published=True) for n in range(3)]
    for one in others[:2]:
        start_run(one)
    with pytest.raises(Refused) as refused:
        start_run(model)
    assert refused.value.code == "no_slot"
    PracticeRun.objects.filter(slot=0).update(deadline_at=timezone.now())
    assert start_run(model).slot == 0  # the overdue one is ended
    assert PracticeRun.objects.filter(state="cancelled").count() == 1
    client = Client()
    for _ in range(REQUESTS_PER_HOUR["try-out"] + 1):
        last = client.post(url_of(others[2], "try/start/"))
    assert last.url == url_of(others[2])


def test_a_run_lasts_until_nobody_asks(model, engine):
    run = start_run(model)
    serve_practice(run.pk)
    run.refresh_from_db()
    assert (run.state, run.error, len(engine.lines)) == ("done", "", 1)
    assert json.loads(engine.lines[0])["inputs"].keys() == {"premise", "hypothesis"}
    serve_practice(run.pk)  # a message that comes twice
    assert len(engine.lines) == 1


def test_an_image_is_asked_in_a_container_for_each_question(model, engine, monkeypatch):
    image = Runnable(image="sha256:1")
    monkeypatch.setattr(serve, "fetch_model", lambda *_: nullcontext(image))
    serve_practice(start_run(model).pk)
    assert PracticeRun.objects.get().state == "done"
    assert engine.more is None
    engine.run = lambda *_, **__: Ending(Outcome.OK)
    serve_practice(start_run(model).pk)
    assert PracticeRun.objects.get().state == "failed"


def test_why_a_model_ended_is_on_its_page(model, engine):
    engine.ending = Ending(Outcome.MODEL_ERROR, sentence="The weights are broken.")
    serve_practice(start_run(model).pk)
    page = ok(Client().get(url_of(model, "try/"))).text
    assert 'id="broke-off"' in page
    assert "The weights are broken." in page
    assert 'id="try-to-fool"' in page


@pytest.mark.parametrize("trouble", ["engine", "files", "platform"])
def test_what_cannot_be_run_says_why(model, engine, monkeypatch, trouble):
    def broken(*_):
        raise serve.CannotFetch("They are gone.") if trouble == "files" else KeyError("a secret")

    monkeypatch.setattr(serve, "fetch_model", broken)
    if trouble == "engine":
        monkeypatch.setattr(serve, "has_engine", lambda: False)
    serve_practice(start_run(model).pk)
    run = PracticeRun.objects.get()
    assert run.state == "failed"
    assert run.error
    assert "secret" not in run.error


def test_a_withdrawn_model_ends_and_its_container_is_not_needed(model, engine, monkeypatch):
    run = start_run(model)

    class Withdrawn(Engine):
        def run(self, *_, beat, **__):
            taken = PracticeRun.objects.get()
            assert is_attempt_current(build_container_key(taken))
            withdraw_model(submission=model, actor=None)
            assert not is_attempt_current(build_container_key(taken))
            serve.leases.heartbeat(taken)

    monkeypatch.setattr(serve, "choose_practice_sandbox", Withdrawn())
    serve_practice(run.pk)
    assert PracticeRun.objects.get().state == "cancelled"


def test_the_run_of_a_worker_that_died_begins_again_as_not_ready(model, running):
    PracticeRun.objects.update(lease_until=timezone.now() - timedelta(minutes=1))
    sweep_jobs()
    run = PracticeRun.objects.get()
    assert run.state == "queued"
    page = ok(Client().get(url_of(model, "try/")))
    assert 'id="starting"' in page.text
    running.take(answer_to(json.dumps({"id": str(running._first)}), NEUTRAL))  # the dead one's
    again = claim_job(PracticeRun, run.pk, ready_at=None)
    assert again.ready_at is None


def test_a_machine_says_that_it_is_there_where_an_engine_answers(db, monkeypatch):
    for has, count in ((False, 0), (True, 1)):
        monkeypatch.setattr(serve, "has_engine", lambda has=has: has)
        monkeypatch.setattr(serve, "_noted_at", -serve.HOST_NOTE_SECONDS)
        serve.record_this_host()
        serve.record_this_host()
        assert PracticeHost.objects.count() == count
