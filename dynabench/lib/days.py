"""Days of people's work."""

from datetime import datetime

from django.utils import timezone


def midnight() -> datetime:
    """When today began, at 00:00 UTC: what was used up of the day's caps counts from then on."""
    return timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
