"""The whole way: page, queue, a process that trains, a target, and the model server serving it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from evaluation import jobs
from evaluation.models import TrainingRun
from tasks.models import TargetModel, TaskMember
from tasks.targets.connect import get_endpoint
from tests.support.factories import UserFactory
from tests.support.programs import ROOT, Process
from tests.support.training_data import nli_task, release

pytestmark = pytest.mark.django_db(transaction=True)
State = TrainingRun.State
URL = "/own/nli/trainings/"
QCLUSTER = """
import django
django.setup()
from django.core.management import call_command
from evaluation import jobs
jobs.request_missing_runs = list
call_command("qcluster")
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for the processes, with this test's database."""
    name = Path(connection.settings_dict["NAME"]).resolve()
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{name}")
    monkeypatch.setenv("DYNABENCH_HOME", str(tmp_path / "var"))
    monkeypatch.setenv("SECRET_KEY", settings.SECRET_KEY)  # signs the queue's messages
    return tmp_path


@pytest.fixture
def queue(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen]:
    """`manage.py qcluster` in a process group of its own; it evaluates no targets meanwhile."""
    monkeypatch.setattr(jobs, "request_missing_runs", list)
    with (home / "queue.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", QCLUSTER],
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def task(home: Path):
    task = nli_task(home)
    release(task.rounds.get())
    return task


@pytest.fixture
def owner(client, task, settings):
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    user = UserFactory()
    TaskMember.objects.create(task=task, user=user, role="owner")
    client.force_login(user)
    return client


def ask(owner, epochs: int) -> TrainingRun:
    base = owner.get(URL).context["form"]["base"].initial
    form = {"weight_round1": "1", "base": base, "seed": "0", "epochs": str(epochs)}
    reply = owner.post(URL, form)
    return TrainingRun.objects.get(pk=reply.url.rstrip("/").rsplit("/", 1)[1])


def until(holds: Callable[[], object], run: TrainingRun, home: Path) -> None:
    for _ in range(1800):
        if holds():
            return
        time.sleep(0.1)
    run.refresh_from_db()
    log = (home / "queue.log").read_text()
    raise AssertionError(f"{run.state} {run.message} {run.error}\n{log}")


def now(run: TrainingRun) -> TrainingRun:
    run.refresh_from_db()
    return run


def trainers(run: TrainingRun) -> list[int]:
    """Processes that train for a run."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"train_target" in words and str(run.pk).encode() in words:
            found.append(int(folder.name))
    return found


def test_from_the_button_to_a_served_target(owner, task, queue, home, monkeypatch):
    with Process(home, "--registered") as server:  # it runs before there is a new target
        run = ask(owner, epochs=1)
        until(lambda: now(run).is_over, run, home)
        assert run.state == State.DONE, run.error
        assert owner.get(f"{URL}{run.pk}/").status_code == 200
        owner.post(f"{URL}{run.pk}/", {"number": "2", "name": "stronger"})
        assert task.rounds.get(number=2).target_names == ["stronger"]
        server.wait_for("/models/stronger/health")
        row = {"premise": "It rained all day.", "hypothesis": "The sun shone."}
        assert server.call("/models/stronger/predict", {"inputs": row})[0] == 403
        monkeypatch.setattr(settings, "MODEL_SERVER_URL", f"http://127.0.0.1:{server.port}")
        endpoint = get_endpoint(TargetModel.objects.get(name="stronger"))
        (answer,) = endpoint.predict([row], deadline_seconds=60)
        assert set(answer.prob) == set(run.report["labels"])
        assert endpoint.info(deadline_seconds=60).name == "stronger"
        assert Path(run.report["folder"]).is_relative_to(home / "var" / "models")
        stored_report = json.loads((Path(run.report["folder"]) / "report.json").read_text())
        # The ids of test rows stay in the database, as a folder of a model may be copied.
        assert run.report.keys() - stored_report.keys() == {"standing"}
        assert stored_report.items() <= run.report.items()


def test_a_killed_worker_is_replaced(owner, task, queue, home):
    run = ask(owner, epochs=100)
    until(lambda: trainers(run), run, home)
    (trainer,) = trainers(run)
    worker = int(Path(f"/proc/{trainer}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(worker, signal.SIGKILL)
    until(lambda: not trainers(run), run, home)  # the pipe broke
    assert now(run).state == State.RUNNING  # nobody knows yet
    TrainingRun.objects.filter(pk=run.pk).update(
        lease_until=timezone.now() - timedelta(seconds=1), options={**run.options, "epochs": 1}
    )
    jobs.sweep_all()  # unless the queue has just done so itself
    until(lambda: now(run).is_over, run, home)
    assert (run.state, run.attempts) == (State.DONE, 2), run.error
