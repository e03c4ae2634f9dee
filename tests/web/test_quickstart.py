"""The run script's processes: the queue is started again, whatever became of it."""

import sys

import pytest
from django.db import OperationalError

from dynabench.management.commands import quickstart
from dynabench.management.commands.quickstart import Processes
from evaluation.starters import STARTERS
from tests.unit.tasks.endpoints.conftest import serve  # noqa: F401


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """With a queue that does nothing, and no other process."""
    monkeypatch.setattr(quickstart, "sweep_all", lambda: 0)
    monkeypatch.setattr(quickstart, "stuck", lambda after: [])
    made = Processes.__new__(Processes)
    made.commands = {"queue": [sys.executable, "-c", "import time; time.sleep(600)"]}
    made.urls, made.running, made.logs = {}, {}, tmp_path
    made._start("queue")
    yield made
    made.running["queue"].kill()
    made.running["queue"].wait()


def test_a_queue_that_is_well_is_left_alone(processes):
    before = processes.running["queue"]
    processes._look_after_queue()
    assert processes.running["queue"] is before
    assert before.poll() is None


def test_a_queue_that_ended_is_started_again(processes):
    before = processes.running["queue"]
    before.kill()
    before.wait()
    processes._look_after_queue()
    assert processes.running["queue"].poll() is None


def test_a_queue_that_hangs_is_killed_and_started_again(processes, monkeypatch):
    before = processes.running["queue"]
    monkeypatch.setattr(quickstart, "stuck", lambda after: ["a run waits"])
    processes._look_after_queue()
    assert before.poll() is not None
    assert processes.running["queue"].poll() is None


def test_while_the_database_is_away_nothing_is_done(processes, monkeypatch):
    def away():
        raise OperationalError

    before = processes.running["queue"]
    monkeypatch.setattr(quickstart, "sweep_all", away)
    monkeypatch.setattr(quickstart.connection, "close", lambda: None)
    processes._look_after_queue()
    assert processes.running["queue"] is before


def test_the_address_waits_for_starters_that_are_being_loaded(
    processes,
    serve,  # noqa: F811
    settings,
):
    def behave(handler, seen):
        loading = len(server.seen) < 3
        handler.send_response(503 if loading else 404)  # 404: an owner took the starter away
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    server = serve(behave)
    settings.MODEL_SERVER_URL = server.url
    processes.wait_until_loaded()
    assert len(server.seen) == 3 + len(STARTERS) - 1
