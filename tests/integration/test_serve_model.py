"""The command in a process of its own: HTTP/1.1, keep-alive, a clean stop."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serving.asgi import MAX_BODY_BYTES
from tests.support.programs import (
    Process,
    exchange,
    home,  # noqa: F401
)
from tests.support.serving_models import tiny_model

ROW = {"inputs": {"text": "A warm welcome."}}


@pytest.fixture(scope="module")
def model(home: Path) -> Path:
    return tiny_model(home / "model", "sequence-classification")


@pytest.fixture(scope="module")
def server(home: Path, model: Path) -> Iterator[Process]:
    arguments = [f"{precision}={model},precision={precision}" for precision in ("fp32", "int8")]
    with Process(home, *arguments, f"torch={model},backend=torch") as running:
        for name in ("fp32", "int8", "torch"):
            running.wait_for(f"/models/{name}/health")
        yield running


def test_one_connection_serves_many_calls(server: Process) -> None:
    connection = server.connect()
    connection.connect()
    first = connection.sock
    for status, path, body in [
        (200, "/models/fp32/predict", ROW),
        (400, "/models/fp32/predict", {"inputs": {}}),
        (404, "/models/none/predict", ROW),
        (413, "/models/fp32/predict", {"inputs": {"text": "x" * MAX_BODY_BYTES}}),
        (200, "/models/fp32/info", None),
    ]:
        assert exchange(connection, path, body)[0] == status
        assert connection.sock is first
    connection.close()


def test_a_chunked_body_is_read(server: Process) -> None:
    connection = server.connect()
    body = json.dumps(ROW).encode()
    connection.request(
        "POST", "/models/fp32/predict", iter([body[:5], body[5:]]), encode_chunked=True
    )
    assert connection.getresponse().status == 200
    connection.close()


def test_backends_agree_and_are_told_apart(server: Process) -> None:
    answers = {
        name: server.call(f"/models/{name}/predict", ROW)[1] for name in ("fp32", "int8", "torch")
    }
    assert answers["fp32"]["prob"] == pytest.approx(answers["torch"]["prob"], abs=1e-4)
    assert answers["fp32"]["prob"] == pytest.approx(answers["int8"]["prob"], abs=0.2)
    assert len({answer["fingerprint"] for answer in answers.values()}) == 3


def test_many_clients_at_once_get_their_own_answers(server: Process) -> None:
    words = [f"number {n} " * (1 + n % 9) for n in range(24)]
    alone = [server.call("/models/fp32/predict", {"inputs": {"text": w}})[1] for w in words]
    together: dict[int, Any] = {}

    def ask(number: int) -> None:
        body = {"inputs": {"text": words[number]}}
        together[number] = server.call("/models/fp32/predict", body)[1]

    threads = [threading.Thread(target=ask, args=[number]) for number in range(len(words))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, answer in enumerate(alone):
        assert together[number]["prob"] == pytest.approx(answer["prob"], abs=1e-4)


def test_exports_are_kept_and_nothing_is_left_in_the_users_home(
    server: Process, home: Path
) -> None:
    digests = [
        server.call(f"/models/{n}/info")[1]["fingerprint"]["digest"] for n in ("fp32", "int8")
    ]
    kept = home / "var" / "serving" / "onnx"
    assert sorted(folder.name for folder in kept.iterdir()) == sorted(digests)
    assert not (home / ".gunicorn").exists()


def test_sigterm_ends_it_cleanly_and_a_kept_export_starts_without_torch(
    home: Path, model: Path
) -> None:
    with Process(home, f"fp32={model}") as first:
        first.wait_for("/models/fp32/health")
        idle = first.connect()
        exchange(idle, "/health", None)
        assert first.stop() == 0
        assert "Worker exiting" in first.log.read_text()  # by itself: gunicorn did not kill it
        idle.close()
    with Process(home, f"fp32={model}") as again:
        again.wait_for("/models/fp32/health")
        pid = again.process.pid
        (worker,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert "libtorch" not in Path(f"/proc/{worker}/maps").read_text()
        assert again.stop(signal.SIGINT) == 0


def test_a_stop_while_loading_is_clean(home: Path, model: Path) -> None:
    with Process(home, f"torch={model},backend=torch") as loading:
        loading.wait_for("/health")
        assert loading.stop() == 0


def test_arguments_that_are_wrong_are_told(home: Path) -> None:
    with Process(home, "nothing") as refused:
        assert refused.process.wait(60) == 1
        assert "write NAME=PATH" in refused.log.read_text()
