"""Examples and votes by program."""

import pytest

from dynabench.client import Invalid, Refused, TimedOut
from dynabench.client.writing import LONGEST_ASKING
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
    failed = {**ASKING, "state": "failed", "failure": "The model did not answer."}
    server.answers += [good(ASKING, 202), good(failed)]
    with pytest.raises(Refused, match="The model did not answer"):
        client.annotate(7, INPUTS)


def test_targets_that_never_answer(server, client, monkeypatch):
    times = iter([0, LONGEST_ASKING, LONGEST_ASKING + 1])
    monkeypatch.setattr("dynabench.client.writing.monotonic", lambda: next(times))
    server.route = lambda request: good(ASKING, 202)
    with pytest.raises(TimedOut):
        client.annotate(7, INPUTS)


def test_a_wrong_example_says_the_field(server, client):
    server.answers.append(bad(422, "invalid", "No.", {"inputs.hypothesis": ["Too long."]}))
    with pytest.raises(Invalid, match=r"inputs\.hypothesis: Too long"):
        client.annotate(7, INPUTS)
