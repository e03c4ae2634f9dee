"""A job's process is watched: what it tells is kept, and it never outlives its lease."""

import os
import pickle
import queue
import signal
import textwrap
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.db import OperationalError
from django.utils import timezone

from evaluation.contract import Runnable
from evaluation.isolation.queue import leases, subprocess_job
from evaluation.isolation.queue.leases import LeaseLost
from evaluation.isolation.queue.subprocess_job import run_subprocess_job
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.isolation.sandbox.limits import Limits
from evaluation.models import TrainingRun
from evaluation.runs import ray_driver, ray_runner
from tests.support.factories import TaskFactory

State = TrainingRun.State


@pytest.fixture
def run(db):
    TrainingRun.objects.create(task=TaskFactory(code="nli"), options={})
    return leases.claim_job(TrainingRun, TrainingRun.objects.get().pk)


@pytest.fixture
def program(settings, tmp_path, monkeypatch):
    """Have `manage.py` be a short program."""
    settings.BASE_DIR = tmp_path
    monkeypatch.setattr(subprocess_job, "BEAT_SECONDS", 0.01)

    def write(text: str) -> None:
        (tmp_path / "manage.py").write_text("import json, os, sys, time\n" + textwrap.dedent(text))

    return write


def test_the_report_of_the_process_is_stored(run, program):
    program("""
        print("a library says something")
        print(json.dumps({"progress": 0.5, "message": sys.argv[1]}))
        print("5")
        print(json.dumps({"report": {"after": 0.75}}))
    """)
    run_subprocess_job(run, ["hello"])
    run.refresh_from_db()
    assert (run.state, run.report, run.progress) == (State.DONE, {"after": 0.75}, 1.0)


def test_what_cannot_be_done_now_waits(run, program):
    program('print(json.dumps({"wait": "It waits for a node."}))')
    run_subprocess_job(run, [])
    run.refresh_from_db()
    assert (run.state, run.message, run.attempts) == (State.QUEUED, "It waits for a node.", 0)


def test_what_a_server_of_others_keeps_waiting_notes_since_when(run, program):
    program('print(json.dumps({"away": "The hub does not answer."}))')
    run_subprocess_job(run, [])
    run.refresh_from_db()
    assert (run.state, run.attempts) == (State.QUEUED, 0)
    assert run.away_since


def test_it_outlives_a_database_that_comes_back(run, program, monkeypatch):
    program('print(json.dumps({"report": {"after": 0.75}}))')
    writes = {"write_heartbeat": leases.write_heartbeat, "finish_job": leases.finish_job}
    for name, write in writes.items():

        def away_at_first(*arguments, name=name, write=write, **columns):
            monkeypatch.setattr(leases, name, write)
            raise OperationalError("The server closed the connection.")

        monkeypatch.setattr(leases, name, away_at_first)
    # The connection of the test holds its transaction, so it stays open.
    monkeypatch.setattr(leases.connection, "close", lambda: None)
    monkeypatch.setattr(leases.time, "sleep", lambda seconds: None)
    run_subprocess_job(run, [])
    run.refresh_from_db()
    assert (run.state, run.report) == (State.DONE, {"after": 0.75})


def test_its_progress_is_told_while_it_runs(run, program):
    program("""
        print(json.dumps({"progress": 0.5, "message": "half"}), flush=True)
        sys.stdin.readline()
        print(json.dumps({"report": {}}))
    """)
    read, write = os.pipe()
    kept = os.dup(0)
    os.dup2(read, 0)
    shown = []

    def show(progress, message):
        shown.append((progress, message))
        if message == "half":
            os.write(write, b"go on\n")

    try:
        run_subprocess_job(run, [], show)
    finally:
        os.dup2(kept, 0)
        for number in (read, write, kept):
            os.close(number)
    assert shown[-1] == (0.5, "half")
    run.refresh_from_db()
    assert run.state == State.DONE


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('print(json.dumps({"error": "There are no rows."}))', "There are no rows."),
        ("sys.exit(3)", "The process ended with status 3. The worker's log says why."),
        ('print(json.dumps({"report": {}})); sys.exit(3)', "status 3"),
        ("os.kill(os.getpid(), 9)", "killed"),
        ("", "The process ended with status 0"),
    ],
)
def test_a_failure_is_told(run, program, text, error):
    program(text)
    run_subprocess_job(run, [])
    run.refresh_from_db()
    assert (run.state, run.report) == (State.FAILED, {})
    assert error in run.error


ENDLESS = """
    open("pid", "w").write(str(os.getpid()))
    print(json.dumps({"progress": 0.5}), flush=True)
    while True:
        time.sleep(0.01)
"""


def ended(folder) -> bool:
    """Whether the process of ENDLESS is gone; run_subprocess_job has waited for it."""
    return not os.path.exists(f"/proc/{(folder / 'pid').read_text()}")


def test_a_lost_lease_kills_the_process(run, program, tmp_path):
    program(ENDLESS)

    def lose(progress, message):
        if progress == 0.5:
            TrainingRun.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
            leases.sweep_jobs()

    with pytest.raises(LeaseLost):
        run_subprocess_job(run, [], lose)
    assert ended(tmp_path)
    assert TrainingRun.objects.get().state == State.QUEUED


def test_an_endless_process_is_stopped(run, program, tmp_path, monkeypatch):
    program(ENDLESS)

    def hurry(progress, message):
        if progress == 0.5:
            monkeypatch.setattr(subprocess_job.time, "monotonic", lambda: float("inf"))

    run_subprocess_job(run, [], hurry)
    assert ended(tmp_path)
    assert "longer than 5 hours" in TrainingRun.objects.get().error


def test_ctrl_c_ends_the_process_too(run, program, tmp_path):
    program(ENDLESS)

    def interrupt(progress, message):
        if progress == 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_subprocess_job(run, [], interrupt)
    assert ended(tmp_path)


def test_where_the_last_node_dies_that_could_do_it_it_waits_for_another_one():
    """Ray itself would wait forever, and the job with it."""
    node = {"CPU": 2, "memory": 9}
    alive = [{"Alive": True, "Resources": node}, {"Alive": False, "Resources": {"GPU": 1}}]
    cluster = ray_driver.Cluster("")
    cluster.ray = SimpleNamespace(wait=lambda *args, timeout: ([], args[0]), nodes=lambda: alive)
    cluster._nodes = [{**node, "GPU": 1}]
    assert cluster.choose_node({"GPU": 1})["num_gpus"] == 1
    with pytest.raises(ray_driver.NotNow, match="1 GPU"):
        cluster.wait_for_first(["shard"], [{"CPU": 1}, {"GPU": 1}])


def test_a_site_that_requires_the_sandbox_waits_for_a_node_that_has_one(monkeypatch):
    monkeypatch.setenv("SANDBOX_REQUIRED", "1")
    for name in [name for name in os.environ if name not in ray_runner._make_environment()]:
        monkeypatch.delenv(name)  # as the process has it that asks
    limits = Limits(cpus=1, memory_bytes=1)
    cluster = ray_driver.RunConnection(
        ray_driver.ClusterJob("", 4, "key", Runnable(), Path(), limits)
    )
    cluster.ray, cluster._nodes = SimpleNamespace(remote=None), [{"CPU": 1, "memory": 1}]
    work = cluster._pack_work()
    with pytest.raises(ray_driver.NotNow, match="docker"):
        cluster._submit_shard(work)


def test_half_a_word_is_the_end_of_whoever_speaks(monkeypatch):
    """A worker that is killed while it asks, and a process that is killed while it tells."""
    half = pickle.dumps(("word", "x" * 99))[:-9]
    news = queue.Queue()
    ray_runner._read_messages(BytesIO(half), news)
    assert news.get_nowait() == (ray_runner.OVER_WORD, None)
    read, write = os.pipe()
    os.write(write, half)
    os.close(write)
    killed = []
    monkeypatch.setattr(ray_driver.os, "dup", lambda number: read)
    monkeypatch.setattr(ray_driver.os, "kill", lambda *told: killed.append(told))
    ray_driver._queue_requests(queue.SimpleQueue())
    assert killed == [(os.getpid(), signal.SIGTERM)]


def test_where_the_process_that_asks_a_cluster_ended_another_is_asked_next(monkeypatch):
    words = [
        (ray_driver.FAILED, "why"),
        (ray_runner.OVER_WORD, None),
        (ray_driver.NOT_NOW, "no node"),
    ]
    made = []

    class Ended:
        def __enter__(self):
            made.append(self)
            return self

        def __exit__(self, *error):
            pass

        def send(self, what):
            pass

        def iterate_messages(self, beat):
            yield words.pop(0)

    monkeypatch.setattr(ray_runner, "_Driver", Ended)
    with ray_runner.NodeClient(ray_driver.ProcessRequest("", {}), print) as node:
        for error in (ray_runner.ClusterFailed, ray_runner.ClusterFailed, NoEngine):
            with pytest.raises(error):
                next(node.do_errand(iter))
    assert len(made) == 2
