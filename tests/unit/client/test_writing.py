"""Examples and votes by program."""

import pytest

from dynabench.client import Invalid, Refused, TimedOut
from dynabench.client.writing import MAX_ANSWER_SECONDS
from tests.unit.client.conftest import bad, good

EXAMPLE = {"id": "e", "outcome": "fooled", "answers": []}
ASKING = {"id": "a", "state": "asking", "failure": "", "example": None}
INPUTS = {"hypothesis": "It rains."}


def test_an_example_that_is_answered_at_once(server, client, pauses):
    server.answers += [good({"id": 7, "goal": "neutral"}), good(EXAMPLE, 201)]
    assignment = client.assignment("nli", want="goal")
    assert server.body() == {"want": "goal"}
    assert client.annotate(assignment["id"], INPUTS) == EXAMPLE
    assert server.lines[1] == "POST /assignments/7/examples/"
    assert server.body() == {"inputs": INPUTS}
    assert not pauses


def test_targets_are_waited_for(server, client, pauses):
    done = {**ASKING, "state": "done", "example": EXAMPLE}
    server.answers += [good(ASKING, 202), good(ASKING), good(done)]
    assert client.annotate(7, INPUTS) == EXAMPLE
    assert server.lines[1:] == ["GET /attempts/a/"] * 2
    assert len(pauses) == 2


def test_targets_that_fail(server, client):
    failed = {**ASKING, "state": "failed", "failure": "It slept."}
    server.answers += [good(ASKING, 202), good(failed)]
    with pytest.raises(Refused, match="slept"):
        client.annotate(7, INPUTS)


def test_targets_that_never_answer(server, client, monkeypatch):
    times = iter([0, MAX_ANSWER_SECONDS, MAX_ANSWER_SECONDS + 1])
    monkeypatch.setattr("dynabench.client.writing.monotonic", lambda: next(times))
    server.route = lambda request: good(ASKING, 202)
    with pytest.raises(TimedOut):
        client.annotate(7, INPUTS)


def test_a_wrong_example_says_the_field(server, client):
    server.answers.append(bad(422, "invalid", "No.", {"inputs.hypothesis": ["Too long."]}))
    with pytest.raises(Invalid, match=r"inputs\.hypothesis: Too long"):
        client.annotate(7, INPUTS)


TALK = {"turns": [], "at": 2, "said": "", "is_asking": False, "failure": "", "left": 3}


def test_a_turn_is_said_and_waited_for(server, client, pauses):
    server.answers += [good(TALK | {"is_asking": True}, 202), good(TALK), good(TALK), good(TALK)]
    assert client.say(7, "When?") == TALK
    assert server.lines == ["POST /assignments/7/conversation/", "GET /assignments/7/conversation/"]
    assert len(pauses) == 1
    assert client.take_back(7, 0, edit=True) == TALK
    assert server.body() == {"turn": 0, "edit": True}
    assert client.conversation(7) == TALK


def test_an_answer_that_failed_or_never_came_is_no_turn(server, client, monkeypatch):
    server.answers.append(good(TALK | {"failure": "It slept."}))
    with pytest.raises(Refused, match="slept"):
        client.say(7, "When?")
    times = iter([0, MAX_ANSWER_SECONDS, MAX_ANSWER_SECONDS + 1])
    monkeypatch.setattr("dynabench.client.writing.monotonic", lambda: next(times))
    server.route = lambda request: good(TALK | {"is_asking": True}, 202)
    with pytest.raises(TimedOut):
        client.say(7, "When?")
