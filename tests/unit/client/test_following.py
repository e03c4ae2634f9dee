"""Waiting for results, and for targets."""

import asyncio

import httpx
import pytest

from dynabench.client import EvaluationFailed, NotFound, TimedOut, Unreachable
from tests.unit.client.conftest import bad, good

SCORED = {
    "phase": "scored",
    "sentence": "Scored.",
    "is_over": True,
    "dynascore": 50.0,
    "error": None,
}
QUEUED = {"phase": "queued", "sentence": "Number 2.", "is_over": False, "error": None}
RUNNING = {**QUEUED, "phase": "running", "sentence": "Running."}
ERROR = {
    "outcome": "oom", "sentence": "It needed too much.", "limit": "8 GiB", "measured": "9 GiB",
    "log": "\n".join(f"line {n}" for n in range(30)),
}  # fmt: skip


def test_results_are_waited_for_and_each_step_is_told_once(server, client, pauses, capsys):
    server.answers += [good(QUEUED), good(QUEUED), good(RUNNING), good(SCORED)]
    assert client.get_results("m") == SCORED
    assert pauses == [1, 1.5, 2.25]
    assert capsys.readouterr().err == "Number 2.\nRunning.\nScored.\n"


def test_a_terminal_shows_one_line(server, client, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    server.answers += [good(QUEUED), good(SCORED)]
    client.get_results("m")
    said = capsys.readouterr().err
    assert "\rNumber 2. [00:00]" in said
    assert said.endswith("\n")


def test_silence_is_possible(server, client, capsys):
    client.progress = False
    server.answers += [good(QUEUED), good(SCORED)]
    client.get_results("m")
    assert capsys.readouterr().err == ""


def test_at_once(server, client, pauses):
    server.answers.append(good(QUEUED))
    assert client.get_results("m", wait=False) == QUEUED
    assert not pauses


def test_not_for_ever(server, client):
    server.route = lambda request: good(RUNNING)
    with pytest.raises(TimedOut, match="after 0 seconds") as caught:
        client.get_results("m", timeout=0)
    assert isinstance(caught.value, TimeoutError)


@pytest.mark.parametrize("wait", [True, False])
def test_a_failure_carries_the_end_of_the_log(server, client, wait):
    server.answers.append(good({**SCORED, "phase": "failed", "error": ERROR}))
    with pytest.raises(EvaluationFailed) as caught:
        client.get_results("m", wait=wait)
    error = caught.value
    assert (error.outcome, error.sentence) == ("oom", "It needed too much.")
    assert (error.limit, error.measured, error.log) == ("8 GiB", "9 GiB", ERROR["log"])
    assert error.log_tail.splitlines() == [f"line {n}" for n in range(10, 30)]
    assert str(error).startswith("It needed too much. (limit 8 GiB, measured 9 GiB)\n")
    assert str(error).endswith("line 29")


def test_a_failure_of_which_nothing_is_told(server, client):
    server.answers.append(good({**SCORED, "phase": "withdrawn", "sentence": "Withdrawn."}))
    with pytest.raises(EvaluationFailed, match=r"^Withdrawn\.$") as caught:
        client.get_results("m")
    assert caught.value.outcome == "withdrawn"


def test_one_set_may_fail(server, client):
    server.answers.append(good({**SCORED, "error": ERROR}))
    assert client.get_results("m")["error"] == ERROR


def test_a_server_that_starts_anew_is_waited_for(server, client, capsys):
    server.answers += [httpx.ConnectError("refused")] * 18 + [good(SCORED)]
    assert client.get_results("m") == SCORED
    said = capsys.readouterr().err
    assert "refused." in said
    assert "Trying again." in said


def test_but_not_for_ever(server, client):
    server.route = lambda request: httpx.ConnectError("refused")
    with pytest.raises(Unreachable):
        client.get_results("m")
    server.asked.clear()
    with pytest.raises(Unreachable):
        client.get_results("m", wait=False)
    assert len(server.asked) == 6


def test_a_wrong_id_is_told_at_once(server, client):
    server.answers.append(bad(404))
    with pytest.raises(NotFound):
        client.get_results("m")


def test_the_log_of_the_check_or_of_a_run(server, client):
    server.answers += [good({"log": "check"}), good({"log": "run"})]
    assert [client.logs("m"), client.logs("m", "r")] == ["check", "run"]
    assert server.lines == ["GET /models/m/", "GET /models/m/runs/r/"]


def test_what_a_model_got_wrong_comes_page_by_page(server, client):
    server.answers += [good({"examples": [], "next_page": None})] * 2
    assert client.wrong("m", "r") == client.wrong("m", "r", page=2)
    assert [request.url.params["page"] for request in server.asked] == ["1", "2"]
    assert server.lines == ["GET /models/m/runs/r/wrong/"] * 2


def test_both_at_once(server, awaiting):
    server.route = lambda request: good({**SCORED, "model": request.url.path.split("/")[4]})

    async def both():
        return await asyncio.gather(awaiting.get_results("a"), awaiting.get_results("b"))

    assert [found["model"] for found in asyncio.run(both())] == ["a", "b"]
