"""Days of people's work."""

from datetime import date, datetime

from django.utils import timezone


def today() -> date:
    """Return the day that it is now, in UTC."""
    return timezone.now().date()


def midnight() -> datetime:
    """Return when today began, at 00:00 UTC: daily limits count from then on."""
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
