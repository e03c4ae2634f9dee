"""Periodic work: each job says beside itself how often it is done, what it counts, and why.

    @daily(counts="people reminded of tokens", why="Programs fail when a token ends.")
    def remind_of_tokens() -> int:

`core.jobs.periodic` finds these modules by themselves and does the work. Pure: no database.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple, TypeVar

Job = TypeVar("Job", bound=Callable[..., object])


class Pace(NamedTuple):
    """How often work is done. `name` is that of its claim (`core.jobs.periodic`)."""

    name: str
    each: timedelta


MINUTELY = Pace("site.minutely", timedelta(seconds=50))  # who calls each minute may be early
QUARTERLY = Pace("site.quarterly", timedelta(minutes=15))
DAILY = Pace("site.daily", timedelta(days=1))
PACES = (MINUTELY, QUARTERLY, DAILY)


class Periodic(NamedTuple):
    """Periodic work: the job, how often it is done, what it counts, and why it is done.

    do: takes nothing and returns a number, which the log tells with the words of `counts`.
    """

    do: Callable[[], int]
    pace: Pace
    counts: str
    why: str


SCHEDULE: dict[str, Periodic] = {}
"""Work that one machine does at a time, by the names of its functions."""
SWEEPS: dict[str, Callable[[], object]] = {}
"""Work of each sweep, on each machine, by the names of its functions."""
TIDYING: dict[str, Callable[[int], int]] = {}
"""What deletes rows once a day, by the names of its functions."""


def _periodically(pace: Pace, counts: str, why: str) -> Callable[[Job], Job]:
    def register(job: Job) -> Job:
        name = _checked_name(job, {"counts": counts, "why": why})
        SCHEDULE[name] = Periodic(job, pace, counts, why)  # type: ignore[arg-type]
        return job

    return register


def minutely(*, counts: str, why: str) -> Callable[[Job], Job]:
    """Have a function done each minute. It takes nothing and returns how many `counts` it did."""
    return _periodically(MINUTELY, counts, why)


def quarterly(*, counts: str, why: str) -> Callable[[Job], Job]:
    """Have a function done each quarter of an hour, as `minutely`."""
    return _periodically(QUARTERLY, counts, why)


def daily(*, counts: str, why: str) -> Callable[[Job], Job]:
    """Have a function done once a day, as `minutely`."""
    return _periodically(DAILY, counts, why)


def each_sweep(*, why: str) -> Callable[[Job], Job]:
    """Have a function done every half minute on each machine. It takes nothing."""

    def register(job: Job) -> Job:
        SWEEPS[_checked_name(job, {"why": why})] = job
        return job

    return register


def tidied_daily(*, why: str) -> Callable[[Job], Job]:
    """Have a function delete rows once a day.

    It takes how many it may delete at most, and returns how many it deleted. When it deletes as
    many as it may, the next sweep calls it again.
    """

    def register(job: Job) -> Job:
        TIDYING[_checked_name(job, {"why": why})] = job  # type: ignore[assignment]
        return job

    return register


def _checked_name(job: Callable[..., object], words: dict[str, str]) -> str:
    """Return a job's name. Raises TypeError if words are empty, or another job has the name.

    Monitors know work by its name.
    """
    name = job.__name__
    if missing := [part for part, text in words.items() if not text]:
        raise TypeError(f"The periodic work {name} lacks: {', '.join(missing)}.")
    if name in SCHEDULE or name in SWEEPS or name in TIDYING:
        raise TypeError(f"There is periodic work {name} already.")
    return name
