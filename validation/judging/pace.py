"""Refusal of verdicts that arrive before a person can have looked at the example."""

from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from core.errors import Refused
from validation.consensus import reading


class TooSoon(Refused):
    """Raised when a verdict arrives before the person can have read the example.

    The same verdict is accepted a second later. Responses with its status are not stored for an
    Idempotency-Key.
    """

    code = "too_soon"
    status = 429
    wait = 1


def check_was_seen(shown_at: datetime, item_count: int = 1) -> None:
    """Raise TooSoon if these items were shown only a moment ago."""
    if reading.is_too_soon((timezone.now() - shown_at).total_seconds(), item_count):
        raise TooSoon(_("You answered in less than a second. Read the example, then answer again."))
