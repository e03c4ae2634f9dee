"""Work that the site does every so often, by whichever of its processes comes first."""

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from core.jobs.models import LastSuccess, PeriodicWork


def claim(work: str, every: timedelta) -> bool:
    """Return whether the caller should do this work now.

    Nobody can claim the same work again before `every` has passed. No lock: of several processes
    that claim at once, only one conditional update succeeds.
    """
    now = timezone.now()
    is_due = Q(claimed_at=None) | Q(claimed_at__lte=now - every)
    rows = PeriodicWork.objects.filter(work=work)
    if rows.filter(is_due).update(claimed_at=now):
        return True
    # Not due, or claimed by another process a moment ago.
    if rows.exists():
        return False
    # The very first time there is no row to update; whoever loses the race to insert it updates.
    PeriodicWork.objects.bulk_create([PeriodicWork(work=work)], ignore_conflicts=True)
    return bool(rows.filter(is_due).update(claimed_at=now))


def has_succeeded(job: str, within: timedelta) -> bool:
    """Return whether a job has succeeded within a time."""
    return LastSuccess.objects.filter(job=job, succeeded_at__gt=timezone.now() - within).exists()
