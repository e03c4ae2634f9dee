"""The queue's processes while they are killed, as somebody runs them who never looks again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tasks.models import Round
from tests.support.factories import RoundFactory
from tests.support.live import ROOT, environment, family
from tests.support.training_data import asked_release

HEALED_SECONDS = 60  # what operators are promised
QCLUSTER = """
import django
django.setup()
from django.core.management import call_command
from core.jobs import keeper
from dynabench.operations.management.commands import qcluster
keeper.IDLE_SECONDS = 5.0  # so that a hanging worker is noticed sooner, also if it stopped
keeper.WORK_SECONDS = 20.0  # before it said that it had done the job,
qcluster.SWEEP_SECONDS = 3.0  # and a job that nobody rang for
call_command("qcluster", skip_checks=False)
"""


def is_so_soon(holds: Callable[[], bool], seconds: float = HEALED_SECONDS) -> bool:
    """Whether it comes true in this time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture
def queue(transactional_db, tmp_path: Path) -> Iterator[subprocess.Popen]:
    """`manage.py qcluster`, well and idle."""
    with (tmp_path / "queue.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", QCLUSTER],
            cwd=ROOT, env=environment(tmp_path), stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        assert job_is_done()
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        print((tmp_path / "queue.log").read_text())


def job_is_done(*, rung: bool = True) -> bool:
    """Whether a new job is; not rung for, it is found in its row."""
    dataset = asked_release(Round.objects.first() or RoundFactory(state="closed"), rung=rung)

    def is_done() -> bool:
        dataset.refresh_from_db()
        return dataset.state == dataset.State.DONE

    return is_so_soon(is_done)


def test_whichever_process_is_killed_the_next_job_is_done(queue):
    """Each dies once, while idle; the worker then holds whatever idle workers hold."""
    number = len(family(queue.pid))
    assert number >= 2
    for index in range(number):
        assert is_so_soon(lambda: len(family(queue.pid)) == number)
        os.kill(family(queue.pid)[index], signal.SIGKILL)
        assert job_is_done(), f"process {index} of {number}"


def test_a_job_that_nobody_rang_for_is_found_though_the_worker_hangs(queue):
    (*_, worker) = family(queue.pid)
    os.kill(worker, signal.SIGSTOP)
    assert job_is_done(rung=False)


def test_it_ends_when_asked_though_all_its_processes_are(queue):
    members = family(queue.pid)
    os.killpg(queue.pid, signal.SIGTERM)
    assert queue.wait(HEALED_SECONDS) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in members)


def test_processes_whose_master_was_killed_end(queue):
    members = family(queue.pid)
    queue.kill()
    assert is_so_soon(lambda: not any(Path(f"/proc/{pid}").exists() for pid in members))
