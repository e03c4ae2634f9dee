"""Days of people's work."""

from datetime import date, datetime

from django.utils import timezone


def today() -> date:
    """Return the current day in UTC."""
    return timezone.now().date()


def midnight() -> datetime:
    """Return 00:00 UTC of today, from which daily limits count."""
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
