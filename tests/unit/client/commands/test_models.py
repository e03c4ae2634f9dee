"""`dynabench submit`, `status`, `logs`, `results` and `withdraw`: what becomes of models."""

import io
import json
import re
import sys

import pytest

from dynabench.client.commands import main
from tests.unit.client.commands.conftest import ID, RESULTS, SERVER, refusal

RUN = {
    "id": ID, "evaluation_set": "control", "version": 2, "suite": "plain", "state": "failed",
    "error": "It needed too much.",
}  # fmt: skip


def test_a_model_is_handed_in_followed_and_published(accepting, capsys):
    wanted = ["--task", "nli", "--name", "mine", "--description", "Mine.", "--publish"]
    assert main(["submit", "--predictions", "answers.jsonl", "--set", "round-1", *wanted]) == 0
    assert accepting.body("/tasks/nli/models/") == {
        "kind": "predictions", "name": "mine", "card": {"description": "Mine."},
        "evaluation_set": "round-1", "upload": "u1",
    }  # fmt: skip
    assert accepting.asked[-1].url.path == f"/api/v1/models/{ID}/publish/"
    out, err = capsys.readouterr()
    assert f"Submitted: {SERVER}/m/{ID}/" in err
    assert "answers.jsonl: 0.0 kB" in err
    assert "Dynascore 41.25 (39.50 to 43.00), rank 2=" in out
    rows = [re.split("  +", line) for line in out.splitlines() if line.startswith("control")]
    assert [row[1:] for row in rows] == [  # in the units of boards
        ["accuracy (%)", "50.00", "40.00 to 60.00", "90"],
        ["robustness_drop (points)", "0.00", "-3.40 to 3.40", "90"],
        ["latency_p95 (s)", "0.02489", "-", "90"],
    ]
    assert "Note: round1_acc: round 1 is not over." in out
    assert out.endswith("Published.\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--hub", "org/name@" + "a" * 40], {"source": "org/name", "revision": "a" * 40}),
        (["--image", "r/n@sha256:12"], {"source": "r/n@sha256:12", "adapter": "jsonl"}),
        (
            ["--endpoint", "https://x.test", "--secret-env", "OF_X", "--name", "x"],
            {"source": "https://x.test", "adapter": "jsonl", "secret": "abc"},
        ),
        (
            ["--chat", "https://x.test/v1", "--model", "m", "--shots", "2", "--name", "x"],
            {"source": "https://x.test/v1", "chat": {"model": "m", "shots": 2}},
        ),
    ],
)
def test_what_is_elsewhere_is_named(accepting, capsys, monkeypatch, arguments, told):
    monkeypatch.setenv("OF_X", "abc")
    assert main(["submit", *arguments, "--task", "nli", "--no-wait"]) == 0
    body = accepting.body("/tasks/nli/models/")
    assert {name: body.get(name) for name in told} == told
    out, err = capsys.readouterr()
    assert out.endswith(f"dynabench status {ID}\n")
    assert "abc" not in out + err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--image", "my-image"], 2, "docker save -o model.tar my-image"),
        (["--image", "missing.tar"], 2, "File not found: missing.tar."),
        (["--predictions", "answers.jsonl"], 2, "--set"),
        (["--endpoint", "https://x.test"], 2, "--name"),
        (["--endpoint", "https://x.test", "--name", "x", "--secret-env", "NO_X"], 2, "NO_X"),
        (["--chat", "https://x.test/v1", "--name", "x"], 2, "--model"),
        (["--chat", "https://x.test/v1", "--name", "x", "--model", "m", "--prompt", "no"], 2, "no"),
        (["--hub", "a/b@c", "--estimate"], 2, "--chat"),
        (["--hub", "a/b@c", "--publish", "--no-wait"], 2, "remove --no-wait"),
        (["no-such-folder"], 2, "File not found: no-such-folder."),
    ],
)
def test_what_is_missing_is_asked_for(accepting, failing, arguments, code, said):
    found, text = failing("submit", *arguments, "--task", "nli")
    assert found == code
    assert said in text
    assert not [request for request in accepting.asked if request.method == "POST"]


def test_a_model_that_failed_shows_the_end_of_its_log(accepting, failing):
    error = {
        "outcome": "timeout", "sentence": "It had not ended.", "limit": "60 s", "measured": "61 s",
        "log": "loading\nanswering\n",
    }  # fmt: skip
    failed = {**RESULTS, "phase": "failed", "error": error}
    accepting.answers[f"GET /models/{ID}/results/"] = failed
    code, said = failing("submit", "--hub", "a/b@c", "--task", "nli")
    assert code == 1
    assert said.startswith("It had not ended. (limit 60 s, measured 61 s)")
    assert said.endswith("loading\nanswering")


def test_who_stops_waiting_is_told_how_to_go_on(accepting, failing):
    accepting.answers[f"GET /models/{ID}/results/"] = KeyboardInterrupt()
    code, said = failing("submit", "--hub", "a/b@c", "--task", "nli")
    assert code == 130
    assert f"dynabench results {ID} --wait" in said


def test_status_of_one_and_of_all(server, capsys):
    model = {"id": ID, "task": "nli", "name": "mine", "sentence": "Sorry, no."}
    model |= {"error": "model.safetensors: these weights are missing.", "log": ""}
    server.answers |= {
        f"GET /models/{ID}/": model,
        f"GET /models/{ID}/runs/": {"results": [RUN], "next": None},
        "GET /me/models/": {"results": [model], "next": None},
    }
    assert main(["status", ID]) == 0
    first, second, _, last = capsys.readouterr().out.splitlines()
    assert first == "mine (nli): Sorry, no."
    assert second == "model.safetensors: these weights are missing."
    assert last.split("  ") == [ID, "control v2, plain", "failed", "It needed too much."]
    assert main(["status"]) == 0
    assert f"{ID}  nli   mine  all  Sorry, no." in capsys.readouterr().out
    file = {**model, "evaluation_set": "reviews"}
    server.answers["GET /me/models/"] = {"results": [file], "next": None}
    assert main(["status"]) == 0
    assert f"{ID}  nli   mine  reviews  Sorry" in capsys.readouterr().out
    server.answers["GET /me/models/"] = {"results": [], "next": None}
    assert main(["status"]) == 0
    assert ID not in capsys.readouterr().out


def test_logs_of_one_evaluation_and_of_all(server, capsys):
    server.answers |= {
        f"GET /models/{ID}/": {"log": ""},
        f"GET /models/{ID}/runs/": {"results": [RUN], "next": None},
        f"GET /models/{ID}/runs/{ID}/": {"log": "loading\n"},
    }
    assert main(["logs", ID]) == 0
    assert capsys.readouterr().out == f"== control v2, plain, run {ID} ==\nloading\n"
    assert main(["logs", ID, "--run", ID]) == 0
    assert capsys.readouterr().out == "loading\n"
    server.answers[f"GET /models/{ID}/runs/"] = {"results": [], "next": None}
    assert main(["logs", ID]) == 0
    assert "== " not in capsys.readouterr().out


def test_results_as_json_are_those_of_the_server(accepting, capsys):
    assert main(["results", ID, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == RESULTS


def test_results_before_there_are_any(accepting, capsys):
    early = {**RESULTS, "dynascore": None, "scores": {}, "notes": [], "is_over": False}
    accepting.answers[f"GET /models/{ID}/results/"] = {**early, "sentence": "Soon."}
    assert main(["results", ID]) == 0
    assert capsys.readouterr().out == "mine (nli): Soon.\n"


def test_a_model_is_published_and_not_any_more(server, capsys):
    model = {"id": ID, "name": "mine"}
    server.answers |= {
        f"POST /models/{ID}/publish/": model,
        f"POST /models/{ID}/unpublish/": model,
    }
    assert main(["publish", ID]) == 0
    assert f"{SERVER}/m/{ID}/" in capsys.readouterr().out
    assert main(["unpublish", ID]) == 0
    assert server.asked[-1].url.path.endswith(f"/models/{ID}/unpublish/")


def test_what_may_not_be_published_is_said(server, failing):
    server.answers[f"POST /models/{ID}/publish/"] = refusal(409, "It has no score yet.")
    assert failing("publish", ID) == (1, "It has no score yet.")


@pytest.fixture
def withdrawable(server):
    server.answers |= {
        f"GET /models/{ID}/": {"id": ID, "name": "mine"},
        f"POST /models/{ID}/withdraw/": {"id": ID, "sentence": "withdrawn"},
    }
    return server


def test_a_model_is_withdrawn_by_who_says_yes(withdrawable, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("Y\n"))
    assert main(["withdraw", ID]) == 0
    out, err = capsys.readouterr()
    assert err.endswith("(y/n)\n")
    assert out == "withdrawn\n"
    assert main(["withdraw", ID, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == ID


@pytest.mark.parametrize("answer", ["", "\n", "no\n", "yesterday\n"])
def test_nothing_is_withdrawn_by_mistake(withdrawable, failing, monkeypatch, answer):
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    code, said = failing("withdraw", ID)
    assert code == 1
    assert "--yes" in said
    assert [request.method for request in withdrawable.asked] == ["GET"]


def test_the_cost_of_a_chat_model_is_told_before(server, capsys):
    told = {"requests": 6, "tokens_in": 600, "tokens_out": 60, "cost": 0.5, "over_cap": True}
    server.answers["POST /tasks/nli/models/estimate/"] = told
    asked = ["--chat", "https://x.test/v1", "--model", "m", "--estimate", "--task", "nli"]
    assert main(["submit", *asked]) == 0
    assert server.body("/tasks/nli/models/estimate/") == {"model": "m"}
    out = capsys.readouterr().out
    assert "6 calls" in out
    assert "0.5000" in out
