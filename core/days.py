"""The current day in UTC, for daily limits."""

from datetime import date, datetime

from django.utils import timezone


def get_today() -> date:
    """Return the current day in UTC."""
    return timezone.now().date()


def get_midnight() -> datetime:
    """Return the last 00:00 UTC, from which daily limits count."""
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
