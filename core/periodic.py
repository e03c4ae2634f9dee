"""Register periodic jobs, each with how often it runs, what it counts, and why.

    @register_daily(counts="people reminded of tokens", why="Programs fail when a token ends.")
    def remind_of_tokens() -> int:

`core.jobs.periodic` finds these modules automatically and runs the jobs. Pure: no database.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple, TypeVar

Job = TypeVar("Job", bound=Callable[..., object])


class JobInterval(NamedTuple):
    """The time between two runs of a job. `name` identifies its claim (`core.jobs.periodic`)."""

    name: str
    length: timedelta


MINUTELY = JobInterval(
    "site.minutely", timedelta(seconds=50)
)  # a caller of each minute may be early
QUARTER_HOURLY = JobInterval("site.quarterly", timedelta(minutes=15))
DAILY = JobInterval("site.daily", timedelta(days=1))
INTERVALS = (MINUTELY, QUARTER_HOURLY, DAILY)


class PeriodicJob(NamedTuple):
    """A periodic job.

    function: takes no arguments and returns a number. interval: how often it runs.
    counts: what the number counts, for the log. why: why the job exists.
    """

    function: Callable[[], int]
    interval: JobInterval
    counts: str
    why: str


SCHEDULED_JOBS: dict[str, PeriodicJob] = {}
"""Jobs that run on one machine at a time, by function name."""
SWEEP_JOBS: dict[str, Callable[[], object]] = {}
"""Jobs of each sweep, which run on every machine, by function name."""
TIDYING_JOBS: dict[str, Callable[[int], int]] = {}
"""Jobs that delete rows once a day, by function name."""


def _register_at_interval(interval: JobInterval, counts: str, why: str) -> Callable[[Job], Job]:
    def register(job: Job) -> Job:
        name = _check_name(job, {"counts": counts, "why": why})
        SCHEDULED_JOBS[name] = PeriodicJob(job, interval, counts, why)  # type: ignore[arg-type]
        return job

    return register


def register_minutely(*, counts: str, why: str) -> Callable[[Job], Job]:
    """Return a decorator that registers a function to run every minute.

    The function takes no arguments and returns a number.

    counts: what the number counts, for the log. why: why the job exists.
    """
    return _register_at_interval(MINUTELY, counts, why)


def register_quarter_hourly(*, counts: str, why: str) -> Callable[[Job], Job]:
    """Return a decorator for a function to run every 15 minutes. See `register_minutely`."""
    return _register_at_interval(QUARTER_HOURLY, counts, why)


def register_daily(*, counts: str, why: str) -> Callable[[Job], Job]:
    """Return a decorator for a function to run once a day. See `register_minutely`."""
    return _register_at_interval(DAILY, counts, why)


def register_sweep(*, why: str) -> Callable[[Job], Job]:
    """Return a decorator for a function to run every half minute on each machine.

    The function takes no arguments. why: why the job exists.
    """

    def register(job: Job) -> Job:
        SWEEP_JOBS[_check_name(job, {"why": why})] = job
        return job

    return register


def register_daily_tidying(*, why: str) -> Callable[[Job], Job]:
    """Return a decorator for a function that deletes rows once a day.

    The function takes the maximum number of rows to delete, and returns how many it deleted. If it
    reaches the maximum, the next sweep calls it again. why: why the job exists.
    """

    def register(job: Job) -> Job:
        TIDYING_JOBS[_check_name(job, {"why": why})] = job  # type: ignore[assignment]
        return job

    return register


def _check_name(job: Callable[..., object], descriptions: dict[str, str]) -> str:
    """Return a job's name, by which monitors know it.

    Raises TypeError if one of `descriptions` is empty, or another job has the name. descriptions:
    the texts that describe the job, by parameter.
    """
    name = job.__name__
    if missing := [parameter for parameter, text in descriptions.items() if not text]:
        raise TypeError(f"The periodic work {name} lacks: {', '.join(missing)}.")
    if name in SCHEDULED_JOBS or name in SWEEP_JOBS or name in TIDYING_JOBS:
        raise TypeError(f"There is periodic work {name} already.")
    return name
