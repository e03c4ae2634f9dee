"""`dynabench worker`: one lease after another, and what is told of each."""

import json
import sys
import time

import httpx
import pytest

from dynabench.client.commands import main, worker
from tests.unit.client.commands.conftest import ID, refusal

TOKEN = "1c9e4f6a-0c43-4f0e-9a5e-2f8f7a0c6d55"
LEASE = {
    "token": TOKEN, "run": ID, "model": ID, "kind": "directory", "adapter": "", "digest": "d",
    "evaluation_set": "dev", "examples": 2, "lease_until": "2099-01-01T00:00:00Z",
    "config_text": "name: NLI", "memory_gib": 8, "cpus": 2.0, "seconds": 3600.0,
}  # fmt: skip
UPLOAD = {"id": "u1", "received": 0, "size": 3, "piece_bytes": 10**6}


def kept(server):
    """How often it was asked to keep the lease."""
    return sum(one.url.path.endswith("/keep/") for one in server.asked)


def slowly(server):
    """A model that comes so slowly that the lease must be kept meanwhile."""
    yield b"t"
    begun = time.monotonic()
    while not kept(server) and time.monotonic() < begun + 5:
        time.sleep(0.01)
    yield b"ar" if kept(server) else b""


@pytest.fixture
def leasing(server, monkeypatch):
    """A server with one lease; `ran`: what ran for it, which `script` says."""
    server.answers |= {
        "POST /tasks/nli/leases/": LEASE,
        f"GET /leases/{TOKEN}/model/": httpx.Response(200, content=b"tar"),
        f"GET /leases/{TOKEN}/inputs/": httpx.Response(200, content=b"{}\n"),
        f"POST /leases/{TOKEN}/keep/": httpx.Response(204),
        f"POST /leases/{TOKEN}/answers/": httpx.Response(204),
        "GET /uploads/": {"results": [], "next": None},
        "POST /uploads/": UPLOAD,
        "PUT /uploads/u1/": {"received": 3},
    }
    server.ran, server.script = [], "print('no JSON')"
    real = worker._start_process

    def started(command):
        server.ran.append(command)
        server.answers["POST /tasks/nli/leases/"] = httpx.Response(204)
        return real([sys.executable, "-c", server.script, command[3]])

    monkeypatch.setattr(worker, "_start_process", started)
    monkeypatch.setattr(worker, "RENEWAL_SECONDS", 0.2)
    return server


def test_answers_of_a_lease_are_handed_in(leasing):
    slow = httpx.Response(200, content=slowly(leasing))
    leasing.answers[f"GET /leases/{TOKEN}/model/"] = slow
    ending = {"outcome": "ok", "sentence": "", "usage": {"seconds": 1.5}}
    report = json.dumps({"runner": "docker", "ending": ending})
    leasing.script = (
        "import sys, time, pathlib; folder = pathlib.Path(sys.argv[1]); time.sleep(0.3);"
        "assert (folder / 'model.tar').read_bytes() == b'tar';"
        f"(folder / 'answers.jsonl').write_text('{{}}\\n'); print({report!r})"
    )
    assert main(["worker", "nli", "--once", "--set", "dev"]) == 0
    assert leasing.body("/tasks/nli/leases/") == {"evaluation_set": "dev"}
    body = leasing.body(f"/leases/{TOKEN}/answers/")
    assert body == {"upload": "u1", "runner": "docker", "ending": ending}
    assert kept(leasing) > 1
    (command,) = leasing.ran
    assert {"--digest=d", "--adapter=jsonl", f"--key=own-{TOKEN}"} <= {*command}


def test_a_sandbox_that_does_not_start_and_a_lost_lease_end_the_lease_alone(leasing, capsys):
    assert main(["worker", "nli", "--once"]) == 0
    body = leasing.body(f"/leases/{TOKEN}/answers/")
    assert (body["upload"], body["ending"]["outcome"]) == (None, "infrastructure")
    leasing.answers["POST /tasks/nli/leases/"] = LEASE
    leasing.answers[f"POST /leases/{TOKEN}/keep/"] = refusal(409, "This lease is over.", "lease")
    leasing.script = "import time; time.sleep(60)"
    assert main(["worker", "nli", "--once"]) == 0
    assert "This lease is over." in capsys.readouterr().err
