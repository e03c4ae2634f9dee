"""Doing the site's periodic work, by whichever of its processes comes first.

Each job registers itself where it is defined (`core.periodic`), and is found by itself:
`manage.py qcluster` does what is due, `manage.py minutely` by hand or by cron.
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
from core.jobs.keeper import is_at_work
from core.jobs.models import LastSuccess, PeriodicWork
from core.jobs.services import note_success, noted
from core.periodic import PACES, SCHEDULE, SWEEPS, TIDYING, Periodic

logger = logging.getLogger(__name__)

ROOT = Path(core.__file__).parents[1]
USES_IT = b"from core.periodic import"
MOST_TIDIED = 10_000  # rows at a time
TIDIED = "tidy_daily"


@lru_cache(maxsize=1)
def find_periodic_work() -> None:
    """Import each module of the rooms that uses `core.periodic`, so that its work is known.

    A module is found by its import line, wherever it is: importing all modules would load
    libraries of models into processes that need none.
    """
    rooms = {config.name.partition(".")[0] for config in apps.get_app_configs()}
    for room in sorted(rooms):
        # Rooms lie beside `core`; other apps are installed elsewhere.
        for path in sorted((ROOT / room).rglob("*.py")):
            if USES_IT in path.read_bytes():
                import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def do_what_is_due() -> list[str]:
    """Do the work of each pace whose time has come; return what failed, as the log tells.

    Work of a pace that some process of the site has begun within that time is not done again. No
    job may rely on another's having been done before it. A database that is away raises Error.
    """
    find_periodic_work()
    failed_names = []
    for pace in PACES:
        if not claim(pace.name, pace.each):  # another process does it, or did it lately
            continue
        for name in sorted(SCHEDULE):
            work = SCHEDULE[name]
            if work.pace == pace and not _is_done(name, work):
                failed_names.append(work.counts)
    return failed_names


def _is_done(name: str, work: Periodic) -> bool:
    """Do some work and return whether that was possible.

    A failure is logged, and does not stop the work that comes after it.
    """
    is_at_work()  # each job has the keeper's full patience
    try:
        with noted(name):
            number = work.do()
        if number:
            logger.info("%d %s", number, work.counts)
    except Error:  # the database is away: the caller waits for it
        raise
    except Exception:
        logger.exception("Failed: %s", work.counts)
        return False
    return True


def do_sweeps() -> None:
    """Do the work of each sweep, one job after another. Each does all that is due."""
    find_periodic_work()
    for name in sorted(SWEEPS):
        SWEEPS[name]()


def tidy_daily() -> int:
    """Delete expired rows once a day; return how many.

    Deletes a limited number of rows of each kind; the next sweep deletes the rest.
    """
    if has_succeeded(TIDIED, period=timedelta(days=1)):
        return 0
    find_periodic_work()
    deleted_counts = [TIDYING[name](MOST_TIDIED) for name in sorted(TIDYING)]
    if max(deleted_counts) < MOST_TIDIED:  # otherwise there may be more, for the next sweep
        note_success(TIDIED)
    return sum(deleted_counts)


def claim(work: str, interval: timedelta) -> bool:
    """Return whether the caller should do this work now.

    Nobody can claim the same work again before `interval` has passed. No lock: of several processes
    that claim at once, only one conditional update succeeds.
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
    """Return whether a job has succeeded within a time."""
    return LastSuccess.objects.filter(job=job, succeeded_at__gt=timezone.now() - period).exists()
