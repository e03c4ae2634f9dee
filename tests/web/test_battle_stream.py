"""Both answers of a battle as they come: to its voter alone, with nothing that tells the models."""

import pytest

from annotation.attempts import partial_answers
from annotation.attempts.partial_answers import build_recorder
from core.accounts.services import get_annotator
from leaderboard.arena.battles import services, turn_services, views
from leaderboard.arena.battles.turn_services import list_stream_keys
from leaderboard.models import Reply, Turn
from tasks.models import TargetModel
from tasks.targets.endpoints.base import EndpointError, Prediction
from tasks.targets.endpoints.live import PendingAnswers
from tests.support.battles import battle_arena
from tests.support.writing import ok, signed_in
from tests.web.conftest import HTMX

URL = "/t/duel/battle/"
STREAM = f"{URL}stream/"
pytestmark = pytest.mark.django_db


@pytest.fixture
def task():
    task = battle_arena()
    for target in TargetModel.objects.all():
        TargetModel.objects.filter(pk=target.pk).update(
            adapter="openai_chat", url="https://models.example/v1", options={"model": target.name}
        )
    return task


@pytest.fixture
def asked(monkeypatch):
    """What each call asked, and its answers, to be set by hand."""
    calls = []

    def call(targets, inputs, seconds):
        calls.append((targets, PendingAnswers()))
        return calls[-1][1]

    monkeypatch.setattr(turn_services, "submit_to_pool", call)
    monkeypatch.setattr(views, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(partial_answers, "PAUSE_SECONDS", 0)
    return calls


def begun(client, user, task):
    """The page after a message, while both models answer."""
    services.give_consent(voter=get_annotator(user), task=task, agrees=True)
    form = client.get(URL).context["form"]
    data = {bound.name: bound.value() or "" for bound in form}
    return ok(client.post(URL, {**data, "prompt": "What is rain?"}, **HTMX)).text


def answer(asked, *texts):
    (_, future), = asked  # fmt: skip
    future.ended.set_result([None, None])
    future.set_result([Prediction({"answer": one}, None, 0.1, {"digest": "d"}) for one in texts])


def test_both_answers_come_side_by_side_and_say_nothing_else(task, alice, bob, asked):
    client = signed_in(alice)
    page = begun(client, alice, task)
    assert f'data-stream="{STREAM}"' in page
    _left, right = (one.on_text for one in asked[0][0])
    right("Water")
    response = client.get(STREAM)
    events = response.streaming_content
    assert next(events) == b'data: ["", "Water"]\n\n'
    for key, text in zip(list_stream_keys(Turn.objects.get()), ("It", "Water that"), strict=True):
        build_recorder(key)(text)
    assert next(events) == b'data: ["It", "Water that"]\n\n'
    assert ok(signed_in(bob).get(URL)).status_code == 200
    assert signed_in(bob).get(STREAM).status_code == 204  # it is another one's
    answer(asked, "It falls.", "Water that falls.")
    assert list(events) == [b"event: done\ndata:\n\n"]
    assert client.get(STREAM).status_code == 204
    told = f"{response.headers}{page}{ok(client.get(URL, **HTMX)).text}"
    for name in ("m1", "m2", "models.example"):
        assert name not in told
    assert {one.side: one.text for one in Reply.objects.all()} == {
        "left": "It falls.",
        "right": "Water that falls.",
    }


def test_a_model_that_cannot_stream_keeps_the_other_silent(task, alice, asked):
    """Else it would be told by its silence."""
    silent = {"adapter": "scripted", "options": {"label": "One."}}
    TargetModel.objects.filter(name="m1").update(**silent)
    begun(signed_in(alice), alice, task)
    assert [one.on_text for one in asked[0][0]] == [None, None]


def test_a_failure_ends_the_stream_and_shows_no_half_answer(task, alice, asked):
    client = signed_in(alice)
    begun(client, alice, task)
    asked[0][0][0].on_text("Half of")
    events = client.get(STREAM).streaming_content
    next(events)
    asked[0][1].ended.set_result([None, None])
    asked[0][1].set_exception(EndpointError("gone", reason="down"))
    assert list(events)[-1] == b"event: done\ndata:\n\n"
    page = ok(client.get(URL, **HTMX)).text
    assert "Half of" not in page
    assert "What is rain?</textarea>" in page
    assert not Reply.objects.exists()
