"""Days of people's work."""

from datetime import date, datetime

from django.utils import timezone


def today() -> date:
    """Return the day that it is now, in UTC."""
    return timezone.now().date()


def midnight() -> datetime:
    """When today began, at 00:00 UTC: what was used up of the day's caps counts from then on."""
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
