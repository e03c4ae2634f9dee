"""Processes that are kept going; tests/integration/test_qcluster.py kills real ones."""

import errno
import time

import pytest

from core.jobs import keeper
from core.jobs.keeper import MAX_IDLE_SECONDS, SupervisedProcess


def work():
    """A long job that has told once that it is one."""
    keeper.announce_job()
    time.sleep(600)


@pytest.fixture
def kept():
    made = SupervisedProcess("worker", work)
    yield made
    made.kill()


def look_until(kept, holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
        kept.restart_if_needed()


def test_a_long_job_that_tells_so_is_left_alone(kept):
    before = kept._process.pid
    look_until(
        kept,
        lambda: (
            keeper._read_deadline(kept._shared_deadline) > time.monotonic() + 2 * MAX_IDLE_SECONDS
        ),
    )
    kept.restart_if_needed()
    assert kept._process.pid == before
    assert not kept.has_ended()


def test_a_job_of_which_nothing_is_heard_any_more_is_killed(monkeypatch):
    monkeypatch.setattr(keeper, "MAX_WORK_SECONDS", 0.0)
    kept = SupervisedProcess("worker", work)
    before = kept._process.pid
    look_until(kept, lambda: kept._process.pid != before)
    kept.kill()


def test_what_cannot_be_started_now_is_started_later(kept, monkeypatch):
    def full():
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    kept.kill()
    with monkeypatch.context() as machine:
        machine.setattr(keeper.FORK_CONTEXT.Process, "start", lambda process: full())
        kept.restart_if_needed()
    assert kept.has_ended()
    kept.restart_if_needed()
    assert not kept.has_ended()


def test_elsewhere_nobody_is_told():
    keeper.announce_job()
