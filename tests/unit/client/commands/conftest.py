"""A server of fixed answers, which the command asks; nothing is sent anywhere."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from dynabench.client.client import DynabenchClient
from dynabench.client.commands import main, shared

ROOT = Path(__file__).parents[4]
SERVER = "http://dynabench.test"
ID = "6a3f0c1e-58a7-4a43-9a53-0b1f6b0c8a11"
TOKEN = {"name": "laptop", "scopes": ["read", "submit"], "expires_at": "2099-01-02T03:04:05Z"}
RESULTS = {
    "model": ID, "name": "mine", "task": "nli", "phase": "scored", "is_over": True,
    "sentence": "Scored on every set.", "dynascore": 41.25, "dynascore_low": 39.5,
    "dynascore_high": 43.0, "rank": "2=", "round1_acc": None,
    "scores": {
        "control": {
            "accuracy": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 90},
            "robustness_drop": {"value": 0.0, "low": -0.034, "high": 0.034, "n": 90},
            "latency_p95": {"value": 0.024885, "low": None, "high": None, "n": 90},
        }
    },
    "notes": ["round1_acc: round 1 is not over."], "error": None,
}  # fmt: skip


class Server:
    """Answers by method and path; notes what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[httpx.Request] = []
        self.otherwise = refusal(404, "There is no such thing.")

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        found = self.answers.get(f"{request.method} {request.url.path.removeprefix('/api/v1')}")
        if isinstance(found, BaseException):
            raise found
        if isinstance(found, httpx.Response):
            return found
        return httpx.Response(200, json=found) if found else self.otherwise

    def body(self, path: str) -> Any:
        """What was posted there last."""
        posts = [r for r in self.asked if r.method == "POST" and r.url.path == f"/api/v1{path}"]
        return json.loads(posts[-1].content)


def refusal(
    status: int, message: str, code: str = "refused", fields: Mapping[str, Sequence[str]] = {}
) -> httpx.Response:
    error = {"code": code, "message": message, "fields": fields}
    return httpx.Response(status, json={"error": error})


@pytest.fixture
def server(tmp_path, monkeypatch) -> Server:
    """The server, which the environment names, and an empty folder to work in."""
    found = Server()
    own = partial(DynabenchClient, transport=httpx.MockTransport(found))
    monkeypatch.setattr(shared, "DynabenchClient", own)
    monkeypatch.setenv("DYNABENCH_URL", SERVER)
    monkeypatch.chdir(tmp_path)
    found.answers["GET /me/"] = {"pseudonym": "w-7f3k2m", "token": TOKEN}
    return found


@pytest.fixture
def failing(server, capsys):
    """`failing("whoami")`: the exit code, and what it says of its failure."""

    def run(*arguments: str) -> tuple[int, str]:
        code = main(arguments)
        out, err = capsys.readouterr()
        assert code != 0
        assert out == "" or "--json" in arguments
        assert "Error: " in err
        assert "Traceback" not in err
        assert "Error: None" not in err
        return code, err.split("Error: ", 1)[1].strip()

    return run


@pytest.fixture
def accepting(server) -> Server:
    """A server that takes every model, and scores it."""
    server.answers |= {
        "GET /tasks/nli/quota/": {"left": 3},
        "GET /uploads/": {"results": [], "next": None},
        "POST /uploads/": {"id": "u1", "received": 0, "size": 3, "piece_bytes": 2},
        "PUT /uploads/u1/": {"received": 3},
        "POST /tasks/nli/models/": {"id": ID},
        f"GET /models/{ID}/results/": RESULTS,
        f"POST /models/{ID}/publish/": {"id": ID},
    }
    Path("answers.jsonl").write_text("{}\n")
    return server
