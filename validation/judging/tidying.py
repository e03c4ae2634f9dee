"""Deletes leases of judges that ended long ago."""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from core.data.rows import delete_some
from core.periodic import tidied_daily
from validation.models import JudgeLease


@tidied_daily(why="Leases of judges are kept for KEEP_LEASES_DAYS.")
def tidy_leases(most: int) -> int:
    """Delete up to `most` leases that take no place and ended KEEP_LEASES_DAYS ago.

    Returns how many were deleted.
    """
    old = timezone.now() - timedelta(days=settings.KEEP_LEASES_DAYS)
    return delete_some(JudgeLease.objects.filter(takes_place=False, until__lt=old), most)
