"""Deletion of judges' leases that ended long ago."""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from core.data.rows import delete_in_batches
from core.periodic import register_daily_tidying
from validation.models import JudgeLease


@register_daily_tidying(why="Leases of judges are kept for KEEP_LEASES_DAYS.")
def tidy_leases(max_rows: int) -> int:
    """Delete up to `max_rows` leases that take no place and ended KEEP_LEASES_DAYS ago.

    Returns how many were deleted.
    """
    ended_before = timezone.now() - timedelta(days=settings.KEEP_LEASES_DAYS)
    return delete_in_batches(
        JudgeLease.objects.filter(takes_place=False, until__lt=ended_before), max_rows
    )
