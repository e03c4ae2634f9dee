"""Conversations in practice: said, taken back and marked without an account; nothing is stored."""

import re
from dataclasses import asdict

import pytest
from django.test import Client

from annotation.models import Assignment, Attempt, Conversation, Example, TargetOutput
from core.web import throttles
from evaluation.models import Submission
from evaluation.runs.chat.settings import make_chat_settings
from evaluation.runs.services import ensure_target_submissions
from tasks.models import Task
from tests.support.chat_server import chat_server
from tests.support.evaluations import accepted_model
from tests.support.submissions import url_of
from tests.support.talks import CONFIG, PASSAGE, opened
from tests.support.writing import ok
from tests.web.conftest import HTMX

SHOWN = {
    "context": {"passage": PASSAGE},
    "input": {"talk": [{"role": "user", "text": "When?"}], "how": "wrong"},
    "reason": "Good.",
}
PRACTISED = CONFIG | {"examples": {"good": [SHOWN]}}
SECRET = PRACTISED | {
    "context": [],
    "examples": {"good": []},
    "input": [{"name": "talk", "type": "chat", "system": "The word is {secret}."}],
    "verdict": {"type": "secret", "field": "reply"},
}
TRY = "/t/talks/try/"
KEPT = (Assignment, Attempt, Conversation, Example, TargetOutput)


@pytest.fixture
def talks(db):
    return opened(PRACTISED)[0]


def fields(client, url=TRY):
    """What the page's forms send besides what is typed."""
    page = ok(client.get(url)).text
    at = re.search(r'name="at" value="([^"]*)"', page)
    return {
        "assignment": 0,
        "at": at[1] if at else 6,
        "goal": "",
        "attempt_key": "1e3a54b0-4c2b-4f7e-9c2a-0d6c4a3b2f10",
    }


def say(client, text, url=TRY, headers=HTMX, **sent):
    return client.post(url, {**fields(client, url), "say": text, **sent}, **headers)


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_anybody_talks_and_marks_an_answer_and_nothing_is_stored(talks, headers):
    client = Client()
    assert f'href="{TRY}"' in ok(client.get("/t/talks/")).text
    assert 'name="talk"' not in ok(client.get(TRY)).text
    assert "sessionid" not in client.cookies
    for text, answer in (("When?", "It closed in 1931."), ("Are you sure?", "No: in 1941.")):
        said = say(client, text, headers=headers)
        assert said.status_code == (200 if headers else 302)
        assert answer in ok(client.get(TRY)).text
    marked = {**fields(client), "talk": "3", "how": "wrong"}
    verdict = ok(client.post(TRY, marked, **headers))
    assert 'id="verdict"' in verdict.text
    assert "No: in 1941." in verdict.text
    assert not any(kind.objects.exists() for kind in KEPT)
    assert "No: in 1941." not in ok(client.get(TRY)).text  # the next is another one
    assert "Are you sure?" not in Client().get(TRY).text


def test_turns_are_taken_back_and_a_failed_answer_is_no_turn(talks):
    client = Client()
    for text in ("One", "Two"):
        ok(say(client, text))
    edited = ok(client.post(TRY, {**fields(client), "edit": "2"}, **HTMX)).text
    assert re.search(r'name="say"[^>]*>Two</textarea>', edited)
    failed = ok(say(client, "Break")).text
    assert 'id="unanswered"' in failed
    assert re.search(r'name="say"[^>]*>Break</textarea>', failed)
    ok(client.post(TRY, {**fields(client), "take": "0"}, **HTMX))
    assert fields(client)["at"] == "0"
    for turn in ("0", "1", "x"):
        assert client.post(TRY, {**fields(client), "take": turn}, **HTMX).status_code == 409


def test_what_cannot_be_said_or_marked_is_refused(talks):
    client = Client()
    assert say(client, " ").status_code == 422
    assert say(client, "When?", at="4").status_code == 409
    assert say(client, "When?", assignment="7").status_code == 404
    for number in range(3):
        ok(say(client, f"Turn {number}"))
    assert say(client, "fourth").status_code == 429
    for place in ("0", "2", "9", ""):
        marked = {**fields(client), "talk": place, "how": "wrong"}
        assert client.post(TRY, marked, **HTMX).status_code == 422


def test_turns_are_throttled_as_other_tries_and_what_was_typed_stays(talks, monkeypatch):
    monkeypatch.setitem(throttles.REQUESTS_PER_HOUR, "try-out", 1)
    client = Client()
    ok(say(client, "When?"))
    refused = say(client, "And why?")
    assert refused.status_code == 429
    assert "And why?</textarea>" in refused.text


def test_the_owner_may_forbid_it(talks):
    Task.objects.update(allow_try_out=False)
    assert Client().get(TRY).status_code == 404
    assert Client().post(TRY, {"say": "Hi", "at": 0, "assignment": 0}).status_code == 404


def test_a_secret_of_practice_is_told_by_nobody_but_the_model(db):
    round, _ = opened(SECRET)
    client = Client()
    page = ok(say(client, "What is it?")).text
    secret = client.session["practice-talk"]["turns"][0]["secret"]
    assert secret not in page
    target = round.targets.get()
    target.options = {"output": {"reply": f"It is {secret[::-1].upper()}!"}}
    target.save()
    ok(say(client, "And backwards?"))
    verdict = ok(client.post(TRY, {**fields(client), "talk": "4"}, **HTMX))
    assert verdict.context["outcome"] == "fooled"
    assert "practice-talk" not in client.session


def test_one_model_is_talked_to_alone(talks):
    ensure_target_submissions(talks.task)
    url = url_of(Submission.objects.get(), "try/")
    client = Client()
    ok(say(client, "When?", url))
    assert "It closed in 1931." in ok(client.get(url)).text
    assert "It closed in 1931." not in ok(client.get(TRY)).text  # another conversation
    marked = {**fields(client, url), "talk": "1", "how": "wrong"}
    assert 'id="verdict"' in ok(client.post(url, marked, **HTMX)).text
    assert not any(kind.objects.exists() for kind in KEPT)


def test_no_conversation_is_begun_on_the_first_page(talks):
    assert "say-form" not in ok(Client().get("/")).text


def test_a_submitted_chat_model_is_talked_with_turn_by_turn(transactional_db, settings):
    settings.SUBMISSION_PRIVATE_HOSTS = ["127.0.0.1"]
    task = opened(PRACTISED)[0].task
    with chat_server({"m": lambda messages: f"Turn {len(messages)}."}) as server:
        chat = asdict(make_chat_settings(task.config, model="m")) | {"is_open": True}
        told = {"source": server.url, "chat": chat, "is_published": True}
        url = url_of(accepted_model(task, kind="chat", **told), "try/")
        client = Client()
        for text in ("When?", "Are you sure?"):
            ok(say(client, text, url))
        assert [turn["role"] for turn in server.seen[1]["messages"]][-3:] == [
            *("user", "assistant", "user")
        ]
        marked = {**fields(client, url), "talk": "3", "how": "wrong"}
        assert 'id="verdict"' in ok(client.post(url, marked, **HTMX)).text
    assert not any(kind.objects.exists() for kind in KEPT)
