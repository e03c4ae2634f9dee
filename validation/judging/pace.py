"""Refuses verdicts that come before anybody can have looked at the example."""

from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _

from core.errors import Refused
from validation.consensus import reading


class TooSoon(Refused):
    """A verdict came before the person can have looked; the same one may be given a second later.

    Its status is the one whose answers are not kept by an Idempotency-Key.
    """

    code = "too_soon"
    status = 429
    wait = 1


def check_was_seen(shown_at: datetime, items: int = 1) -> None:
    """Raise TooSoon where these items were handed out a moment ago."""
    if reading.is_too_soon((timezone.now() - shown_at).total_seconds(), items):
        raise TooSoon(
            _("That was less than a second after this appeared. Have a look, then answer again.")
        )
