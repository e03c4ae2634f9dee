"""Periodic work: found beside its job, refused when it says less than it must."""

import sys
from types import SimpleNamespace

import pytest

from core.jobs import periodic
from core.periodic import (
    DAILY,
    MINUTELY,
    QUARTER_HOURLY,
    SCHEDULED_JOBS,
    SWEEP_JOBS,
    TIDYING_JOBS,
    register_daily,
    register_daily_tidying,
    register_minutely,
    register_quarter_hourly,
    register_sweep,
)
from tests.support.guide import registered_for_now

WORDS = {"counts": "things done", "why": "Somebody waits."}


@pytest.fixture(autouse=True)
def _restored():
    with registered_for_now():
        yield


def job(most=0):
    return 3


@pytest.mark.parametrize(
    ("decorator", "pace"),
    [
        (register_minutely, MINUTELY),
        (register_quarter_hourly, QUARTER_HOURLY),
        (register_daily, DAILY),
    ],
)
def test_a_job_says_how_often_it_is_done(decorator, pace):
    assert decorator(**WORDS)(job) is job
    assert SCHEDULED_JOBS["job"] == (job, pace, *WORDS.values())


@pytest.mark.parametrize(
    ("decorator", "registry"),
    [(register_sweep, SWEEP_JOBS), (register_daily_tidying, TIDYING_JOBS)],
)
def test_sweeps_and_what_tidies_are_kept_apart(decorator, registry):
    assert decorator(why="Somebody waits.")(job) is job
    assert registry["job"] is job
    assert "job" not in SCHEDULED_JOBS


@pytest.mark.parametrize("part", ["counts", "why"])
def test_work_that_does_not_say_a_part_is_refused(part):
    with pytest.raises(TypeError, match=f"job lacks: {part}"):
        register_daily(**WORDS | {part: ""})(job)


@pytest.mark.parametrize("decorator", [register_sweep, register_daily_tidying])
def test_it_says_why(decorator):
    with pytest.raises(TypeError, match="job lacks: why"):
        decorator(why="")(job)


def test_a_name_is_given_once_whatever_the_pace():
    register_daily(**WORDS)(job)
    with pytest.raises(TypeError, match="job already"):
        register_sweep(why="Somebody waits.")(job)


def test_work_in_a_new_file_of_a_room_is_found(tmp_path, monkeypatch):
    room = tmp_path / "room_of_a_test" / "deep"
    room.mkdir(parents=True)
    (room.parent / "__init__.py").touch()
    (room / "__init__.py").touch()
    (room / "other.py").write_text("raise AssertionError('it has no periodic work')")
    (room / "letters.py").write_text(
        "from core.periodic import register_daily\n\n\n"
        "@register_daily(counts='letters', why='They are due.')\n"
        "def send_letters():\n    return 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(periodic, "ROOT", tmp_path)
    configs = [SimpleNamespace(name="room_of_a_test"), SimpleNamespace(name="django.contrib.auth")]
    monkeypatch.setattr(periodic.apps, "get_app_configs", lambda: configs)
    try:
        periodic.import_periodic_jobs.__wrapped__()
    finally:
        for name in [name for name in sys.modules if name.startswith("room_of_a_test")]:
            del sys.modules[name]
    assert SCHEDULED_JOBS["send_letters"].function() == 2


def test_the_rooms_work_is_found():
    periodic.import_periodic_jobs()
    assert SCHEDULED_JOBS.keys() >= {"close_due_rounds", "refit_second_opinions", "ask_parts"}
    assert SWEEP_JOBS.keys() >= {
        "turn_closed_rounds_into_runs",
        "send_end_emails",
        "write_erasure_log",
    }
    assert TIDYING_JOBS.keys() >= {"tidy_account_data", "tidy_media", "empty_old_models"}
