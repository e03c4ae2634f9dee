"""Evaluations while what they need is killed: each ends once, with one set of scores.

A person does nothing meanwhile. A supervisor, which the tests play, starts again what has died, and
lets the time pass after which leases run out. KILLS says how often each test is repeated.
"""

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from core.jobs.queue import enqueue
from evaluation import jobs
from evaluation.isolation.queue.attempt_keys import get_installation_key
from evaluation.isolation.sandbox import containers
from evaluation.isolation.sandbox.choose import NO_ENGINE_MESSAGE, has_engine
from evaluation.models import EvaluationRun
from tasks.models import TargetModel, Task
from tests.support.evaluations import accepted_model, queued_run, set_version, without_deltas
from tests.support.factories import TaskFactory, UserFactory
from tests.support.live import Postgres, database_url, wait_until
from tests.support.serving_models import tiny_model

ROOT = Path(__file__).resolve().parents[2]
REPEATS = range(int(os.environ.get("KILLS") or 1))
SIZE = 2000
AT_START = dict(os.environ)  # with the engine of the other tests
State = EvaluationRun.State


class Cluster:
    """The queue as it is run for real, and whoever starts it again when all of it was killed."""

    def __init__(self, home: Path, environment: dict[str, str]) -> None:
        self.log = home / "qcluster.log"
        self._environment = os.environ | environment
        self.start()

    def start(self) -> None:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "qcluster"],
                cwd=ROOT, env=self._environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def worker(self) -> int:
        """The process that does the jobs."""
        found: list[str] = []

        def is_there() -> bool:
            found[:] = re.findall(r"worker 1 ready for work at (\d+)", self.log.read_text())
            return bool(found) and Path("/proc", found[-1]).exists()

        wait_until(is_there)
        return int(found[-1])

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def supervise(
        self,
        run: EvaluationRun,
        *,
        holder_died: bool,
        until: Callable[[EvaluationRun], bool] = lambda run: run.is_over,
    ) -> None:
        """Start the queue again where it ended, and let time pass, until the run is over.

        holder_died: the run's lease is nobody's any more, so the time until it runs out may pass.
        """
        held = run.lease_token

        def is_so() -> bool:
            if self._process.poll() is not None:
                self.start()
            if holder_died:
                leased = EvaluationRun.objects.filter(state=State.RUNNING, lease_token=held)
                leased.update(lease_until=timezone.now() - timedelta(seconds=1))
            EvaluationRun.objects.update(not_before=None)
            jobs.sweep_all()
            run.refresh_from_db()
            return until(run)

        wait_until(is_so, pause=1)


@pytest.fixture
def home(settings, tmp_path, monkeypatch) -> Path:
    """Where the other processes live; no container engine is there."""
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    return tmp_path


@pytest.fixture
def cluster(home, settings, transactional_db) -> Iterator[Cluster]:
    environment = {
        "DATABASE_URL": database_url(),
        "DYNABENCH_HOME": str(home),
        "SECRET_KEY": settings.SECRET_KEY,
        "DEBUG": "1",
        "DOCKER_HOST": os.environ["DOCKER_HOST"],
    }
    cluster = Cluster(home, environment)
    yield cluster
    cluster.kill()


@pytest.fixture(scope="module")
def weights(tmp_path_factory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("weights") / "model", "pair-classification")


def plain_task() -> Task:
    """One whose models are asked nothing perturbed, by the queue's own sweep either."""
    task = TaskFactory(code="nli")
    without_deltas(task)
    return task


def queued(weights: Path) -> EvaluationRun:
    """A run of a target that has been rung for."""
    task = plain_task()
    target = TargetModel.objects.create(
        task=task, name="tiny", source=str(weights), allowed_folder=str(weights)
    )
    model = accepted_model(task, kind="target", target=target)
    return rung(queued_run(model, set_version(task, size=SIZE)))


def rung(run: EvaluationRun) -> EvaluationRun:
    enqueue(run.function, run.pk)
    return run


def wait_for_the_middle(
    run: EvaluationRun, choose: random.Random, held: Path | None = None
) -> None:
    """Until the model is being asked, and then for a moment by chance. held: it stops there."""

    def is_asked() -> bool:
        run.refresh_from_db()
        assert not run.is_over, run.error
        return run.state == State.RUNNING and "answers" in run.message

    wait_until(is_asked, pause=0.05)
    if held:
        send_to_model(held, signal.SIGSTOP)
    time.sleep(choose.random())


def check_ended_once(run: EvaluationRun, size: int = SIZE) -> None:
    assert (run.state, run.outcome) == (State.DONE, "ok"), run.error
    assert EvaluationRun.objects.count() == 1
    (score,) = run.scores.filter(metric="accuracy", slice="", kind="")
    assert score.n == size
    assert run.scores.count() == 2 * 3  # two metrics of all, tag=even and tag=odd
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        assert len({json.loads(line)["uid"] for line in lines}) == size
    kept = [name for name in default_storage.listdir("predictions")[1] if str(run.pk) in name]
    assert len(kept) == 1


def models_running(weights: Path) -> list[int]:
    """The processes that still have the model."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            told = (process / "cmdline").read_bytes().decode()
            if "evaluation.isolation.sandbox.harness" in told and str(weights) in told:
                found.append(int(process.name))
    return found


def send_to_model(weights: Path, number: signal.Signals) -> None:
    """Stopped in the middle and let go on later, no model is too fast for what is killed then."""
    for process in models_running(weights):
        os.kill(process, number)


@pytest.mark.parametrize("repeat", REPEATS)
def test_the_worker_is_killed_and_then_everything_of_the_queue(cluster, weights, repeat):
    run, choose = queued(weights), random.Random(repeat)
    wait_for_the_middle(run, choose, held=weights)
    os.kill(cluster.worker(), signal.SIGKILL)
    send_to_model(weights, signal.SIGCONT)
    cluster.supervise(run, holder_died=True, until=lambda run: run.attempts == 2)
    wait_for_the_middle(run, choose, held=weights)
    cluster.kill()
    send_to_model(weights, signal.SIGCONT)
    cluster.supervise(run, holder_died=True)
    check_ended_once(run)
    assert run.attempts == 3
    wait_until(lambda: not models_running(weights))


@pytest.mark.parametrize("repeat", REPEATS)
def test_the_idle_worker_is_killed(cluster, weights, repeat):
    os.kill(cluster.worker(), signal.SIGKILL)
    run = queued(weights)
    cluster.supervise(run, holder_died=False)
    check_ended_once(run)
    assert run.attempts == 1


@pytest.mark.postgres
@pytest.mark.parametrize("repeat", REPEATS)
def test_the_database_is_killed(cluster, weights, repeat):
    """The model goes on meanwhile; what it answered is stored when the database is back."""
    run, server = queued(weights), Postgres()
    choose = random.Random(repeat)
    wait_for_the_middle(run, choose)
    server.kill()
    time.sleep(4 * choose.random())
    server.start()
    cluster.supervise(run, holder_died=False)
    check_ended_once(run)
    wait_until(lambda: not models_running(weights))


SLOW_MODEL = """
import json, sys, time
for line in open("/input/examples.jsonl"):
    answer = {"id": json.loads(line)["id"], "output": {"label": "neutral"}, "prob": None}
    print(json.dumps(answer), flush=True)
    time.sleep(0.02)
"""
BASE = "dynabench-base"
FEW = 150  # examples: three seconds


class Engine:
    """A Docker engine of our own, with an image that answers slowly."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self.address = f"unix://{home}/docker.sock"
        self.start()
        context = home / "image"
        context.mkdir()
        (context / "answer.py").write_text(SLOW_MODEL)
        (context / "Dockerfile").write_text(
            f'FROM {BASE}\nCOPY answer.py /answer.py\nCMD ["python3", "/answer.py"]\n'
        )
        saved = subprocess.run(
            ["docker", "save", BASE], check=True, capture_output=True, env=AT_START
        ).stdout
        self._docker("load", input=saved)
        self._docker("build", "--tag", "slow", str(context), env={"DOCKER_BUILDKIT": "0"})
        self.image = self._docker("images", "--quiet", "--no-trunc", "slow").strip()

    def _docker(self, *command: str, env: dict[str, str] | None = None, **options) -> str:
        done = subprocess.run(
            ["docker", "--host", self.address, *command],
            check=True, capture_output=True, env=os.environ | (env or {}), **options,
        )  # fmt: skip
        return done.stdout.decode()

    def start(self) -> None:
        """Again when it ends: it may still see what was left of the old one, and give up."""

        def answers() -> bool:
            if self._process.poll() is not None:
                self._start()
            return has_engine()

        self._start()
        wait_until(answers)

    def _start(self) -> None:
        for name in ("pid", "exec/containerd/containerd.pid"):
            (self._home / name).unlink(missing_ok=True)
        options = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        with (self._home / "dockerd.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["dockerd", "--host", self.address, "--iptables=false", "--bridge=none",
                 *(f"--{name}={self._home}/{path}" for name, path in options.items())],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        subprocess.run(["umount", str(self._home / "data")], check=False)


@pytest.fixture
def engine(monkeypatch) -> Iterator[Engine]:
    with tempfile.TemporaryDirectory(prefix="k", ignore_cleanup_errors=True) as home:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{home}/docker.sock")
        engine = Engine(Path(home))
        yield engine
        engine.stop()


def check_containers_go():
    """The janitor leaves none; a worker that has just written a score may still remove its own."""
    jobs.sweep_all()
    wait_until(lambda: not containers.list_own_containers(get_installation_key()))


@pytest.mark.docker
@pytest.mark.parametrize("repeat", REPEATS)
def test_the_engine_is_killed_and_then_the_worker_of_a_container(home, engine, cluster, repeat):
    """The run waits, and its attempt does not count; the janitor removes what workers leave."""
    task, choose = plain_task(), random.Random(repeat)
    model = accepted_model(task, UserFactory(), kind="image", digest=engine.image)
    run = rung(queued_run(model, set_version(task, size=FEW)))
    wait_for_the_middle(run, choose)
    engine.kill()
    wait_until(lambda: EvaluationRun.objects.get(pk=run.pk).message == NO_ENGINE_MESSAGE)
    engine.start()
    cluster.supervise(run, holder_died=False, until=lambda run: run.state == State.RUNNING)
    wait_for_the_middle(run, choose)
    assert run.attempts == 1
    os.kill(cluster.worker(), signal.SIGKILL)
    assert len(containers.list_own_containers(get_installation_key())) == 1
    cluster.supervise(run, holder_died=True)
    check_ended_once(run, FEW)
    assert (run.attempts, run.runner) == (2, "docker")
    check_containers_go()
