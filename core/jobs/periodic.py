"""Run the site's periodic work, in the first process that finds it due.

Each job registers itself in the module that defines it (`core.periodic`); these modules are found
automatically. `manage.py qcluster` runs the jobs that are due, `manage.py minutely` does so by hand
or by cron.
"""

import logging
from datetime import timedelta
from functools import lru_cache
from importlib import import_module
from pathlib import Path

from django.apps import apps
from django.db import Error
from django.db.models import Q
from django.utils import timezone

import core
from core.jobs.keeper import announce_job
from core.jobs.models import LastSuccess, PeriodicWork
from core.jobs.services import record_job_success, record_success
from core.periodic import INTERVALS, SCHEDULED_JOBS, SWEEP_JOBS, TIDYING_JOBS, PeriodicJob

logger = logging.getLogger(__name__)

ROOT = Path(core.__file__).parents[1]
IMPORT_LINE = b"from core.periodic import"
MAX_TIDIED_ROWS = 10_000  # rows at a time
TIDY_WORK = "tidy_daily"


@lru_cache(maxsize=1)
def import_periodic_jobs() -> None:
    """Import each module that uses `core.periodic`, so that its jobs are registered.

    These modules are found by their import line. Importing every module would load machine-learning
    libraries into processes that do not need them.
    """
    rooms = {config.name.partition(".")[0] for config in apps.get_app_configs()}
    for room in sorted(rooms):
        # Rooms lie beside `core`; other apps are installed elsewhere.
        for path in sorted((ROOT / room).rglob("*.py")):
            if IMPORT_LINE in path.read_bytes():
                import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def run_due_jobs() -> list[str]:
    """Run the jobs of each interval that is due; return the descriptions of those that failed.

    A job's description is its `counts`: what the number that it returns counts.

    An interval is not due if any process of the site has claimed it recently. No job may rely on
    another job having run before. Raises Error if the database is unavailable.
    """
    import_periodic_jobs()
    failed_counts = []
    for interval in INTERVALS:
        # Otherwise another process does it, or did it lately.
        if not claim_work(interval.name, interval.length):
            continue
        for name in sorted(SCHEDULED_JOBS):
            job = SCHEDULED_JOBS[name]
            if job.interval == interval and not _run_job(name, job):
                failed_counts.append(job.counts)
    return failed_counts


def _run_job(name: str, job: PeriodicJob) -> bool:
    """Run a job; return whether it succeeded.

    A failure is logged and does not stop the jobs that come after it. Raises Error if the database
    is unavailable.
    """
    announce_job()  # each job has the keeper's full patience
    try:
        with record_job_success(name):
            number = job.function()
        if number:
            logger.info("%d %s", number, job.counts)
    except Error:  # the database is away: the caller waits for it
        raise
    except Exception:
        logger.exception("Failed: %s", job.counts)
        return False
    return True


def run_sweeps() -> None:
    """Run all sweeps, one after another. If one raises an error, the others do not run."""
    import_periodic_jobs()
    for name in sorted(SWEEP_JOBS):
        SWEEP_JOBS[name]()


def tidy_daily() -> int:
    """Delete expired rows, unless this was done within the last day; return how many.

    Deletes a limited number of rows of each kind. If more remain, the next sweep deletes them.
    """
    if has_succeeded(TIDY_WORK, period=timedelta(days=1)):
        return 0
    import_periodic_jobs()
    deleted_counts = [TIDYING_JOBS[name](MAX_TIDIED_ROWS) for name in sorted(TIDYING_JOBS)]
    if max(deleted_counts) < MAX_TIDIED_ROWS:  # otherwise there may be more, for the next sweep
        record_success(TIDY_WORK)
    return sum(deleted_counts)


def claim_work(work: str, interval: timedelta) -> bool:
    """Claim periodic work if it is due; return whether the caller should do it now.

    work: its name. interval: nobody can claim the same work again before this time has passed.
    Takes no lock: of several processes that claim at once, only one conditional update succeeds.
    """
    now = timezone.now()
    is_due = Q(claimed_at=None) | Q(claimed_at__lte=now - interval)
    rows = PeriodicWork.objects.filter(work=work)
    if rows.filter(is_due).update(claimed_at=now):
        return True
    # Not due, or claimed by another process a moment ago.
    if rows.exists():
        return False
    # The very first time there is no row to update; whoever loses the race to insert it updates.
    PeriodicWork.objects.bulk_create([PeriodicWork(work=work)], ignore_conflicts=True)
    return bool(rows.filter(is_due).update(claimed_at=now))


def has_succeeded(job: str, period: timedelta) -> bool:
    """Return whether a job has succeeded within the last `period`."""
    return LastSuccess.objects.filter(job=job, succeeded_at__gt=timezone.now() - period).exists()
