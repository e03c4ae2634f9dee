"""Deletes what was only to be kept for so many days."""

from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from dynabench.campaigns.models import Campaign, Pause, Place
from dynabench.lib.rows import delete_some

MOST = 100_000


def old_ids() -> QuerySet[Place]:
    """The places of campaigns whose panel ids are kept no longer."""
    now = timezone.now()
    closed = Campaign.objects.filter(closed_at__isnull=False)
    rows = closed.values_list("pk", "closed_at", "id_days")
    over = [pk for pk, at, days in rows if at and at + timedelta(days=days) <= now]
    return Place.objects.filter(campaign__in=over).exclude(id_hash="", sealed_id="")


def old_pauses() -> QuerySet[Pause]:
    """The pauses that ended long ago, with their appeals."""
    before = timezone.now() - timedelta(days=settings.RETENTION_APPEAL_DAYS)
    return Pause.objects.filter(lifted_at__lte=before)


def apply_retention() -> int:
    """Delete all that is over; returns how many rows held some. No lock: each is one update."""
    emptied = old_ids().update(id_hash="", sealed_id="")
    return emptied + delete_some(old_pauses(), MOST)
