"""Checks in a process of their own: what comes back, and that nothing there outgrows its bounds."""

import json
import os
import time
from functools import partial
from threading import BoundedSemaphore

import pytest

from core.errors import Unavailable
from core.files import bounded as module
from core.files.bounded import (
    MIB,
    TOO_DEEP_MESSAGE,
    TOO_LARGE_MESSAGE,
    TOO_LONG_MESSAGE,
    Bounds,
    OutOfBounds,
    run_bounded,
)
from evaluation.isolation.uploads.archives import ArchiveRefused, check_archive
from tests.support.own_process import KNOWN, loads

pytestmark = pytest.mark.own_process


def test_a_result_comes_back():
    assert run_bounded(partial(json.loads, '{"a": [1]}')) == {"a": [1]}


def test_a_long_job_reaches_a_process_that_starts_slowly(monkeypatch):
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.001)
    job = partial(len, b"x" * 3 * MIB)  # more than a pipe holds
    assert run_bounded(job, Bounds(seconds=20)) == 3 * MIB


def test_what_checks_are_given_loads_there():
    assert loads(*KNOWN)


def test_what_it_raises_comes_back_with_its_type(tmp_path):
    (tmp_path / "x").write_bytes(b"no archive")
    with pytest.raises(ArchiveRefused) as told:
        run_bounded(partial(check_archive, tmp_path / "x"))
    with pytest.raises(ArchiveRefused) as here:
        check_archive(tmp_path / "x")
    assert str(told.value) == str(here.value)


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (partial(bytearray, 100 * MIB), TOO_LARGE_MESSAGE),
        (partial(json.loads, "[" * 200_000), TOO_DEEP_MESSAGE),
        (partial(os.abort), module.BROKEN_MESSAGE),
    ],
)
def test_what_breaks_a_check_is_refused(check, said):
    with pytest.raises(OutOfBounds) as refused:
        run_bounded(check, Bounds(memory_bytes=50 * MIB))
    assert str(refused.value) == said


def test_a_check_ends_at_its_time(monkeypatch):
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.01)
    with pytest.raises(OutOfBounds) as refused:
        run_bounded(partial(time.sleep, 600), Bounds(seconds=0.1))
    assert str(refused.value) == TOO_LONG_MESSAGE


def test_a_failure_of_ours_is_no_refusal():
    with pytest.raises(RuntimeError, match="ended with 3"):
        run_bounded(partial(os._exit, 3))


def test_what_a_heartbeat_raises_ends_the_process(monkeypatch):
    monkeypatch.setattr(module, "BEAT_SECONDS", 0.01)
    with pytest.raises(ZeroDivisionError):
        run_bounded(partial(time.sleep, 600), beat=lambda: 1 / 0)


def test_no_secret_is_in_its_environment(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "x")
    assert run_bounded(partial(os.getenv, "SECRET_KEY")) is None


def test_more_than_a_few_at_once_are_asked_to_wait(monkeypatch):
    monkeypatch.setattr(module, "SLOTS", BoundedSemaphore(1))
    monkeypatch.setattr(module, "SLOT_WAIT_SECONDS", 0.01)
    module.SLOTS.acquire()
    with pytest.raises(Unavailable) as refused:
        run_bounded(partial(json.loads, "1"))
    assert (refused.value.status, refused.value.wait) == (503, 60)
