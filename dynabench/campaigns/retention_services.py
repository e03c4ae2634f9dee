"""Delete data that is kept only for a number of days."""

from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from core.data.rows import delete_in_batches
from core.periodic import register_daily
from dynabench.campaigns.invitations import VALID_DAYS
from dynabench.campaigns.models import Campaign, Invited, Pause, Place

MAX_DELETED_ROWS = 100_000
"""The maximum number of rows of a kind that one run deletes."""


def select_expired_ids() -> QuerySet[Place]:
    """Return the places whose panel ids are past the campaign's retention period.

    The period starts when an owner closes the campaign, or else at its scheduled end.
    """
    # In Python, as databases add days in a column to a time in different ways.
    now = timezone.now()
    ended_campaigns = Campaign.objects.annotate(at=Coalesce("closed_at", "closes_at"))
    rows = ended_campaigns.exclude(at=None).values_list("pk", "at", "id_days")
    expired_campaign_ids = [pk for pk, at, days in rows if at <= now - timedelta(days=days)]
    return Place.objects.filter(campaign__in=expired_campaign_ids).exclude(id_hash="", sealed_id="")


def select_expired_pauses() -> QuerySet[Pause]:
    """Return the pauses, with their appeals, that ended longer ago than the retention period."""
    ended_before = timezone.now() - timedelta(days=settings.RETENTION_APPEAL_DAYS)
    return Pause.objects.filter(lifted_at__lte=ended_before)


def select_expired_invitations() -> QuerySet[Invited]:
    """Return the invitations of account holders that are no longer valid."""
    return Invited.objects.filter(made_at__lte=timezone.now() - timedelta(days=VALID_DAYS))


@register_daily(
    counts="expired rows emptied",
    why="Data about panel participants is kept for a limited time.",
)
def apply_retention() -> int:
    """Erase all data past its retention period; return how many rows were changed or deleted.

    Takes no lock.
    """
    emptied_count = select_expired_ids().update(id_hash="", sealed_id="")
    deleted_count = delete_in_batches(
        select_expired_pauses(), MAX_DELETED_ROWS
    ) + delete_in_batches(select_expired_invitations(), MAX_DELETED_ROWS)
    return emptied_count + deleted_count
