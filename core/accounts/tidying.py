"""Ended sessions and old entries of the log are deleted; and when the site did so, and the like."""

from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Q
from django.utils import timezone

from core.accounts.models import LogEntry
from core.accounts.undo_services import over
from core.data.rows import delete_some

FLEETING = ("token.", "webhook.", "submission.", "run.")
"""Actions on what is one's own; those on tasks, rounds and data are part of their history."""
TIDIED = "site.tidied"
EACH = timedelta(days=1)


def is_tidied() -> bool:
    """Whether all was deleted within the last day that is to be."""
    return LogEntry.objects.filter(action=TIDIED, created_at__gt=timezone.now() - EACH).exists()


def note_tidied(deleted: int) -> None:
    """Leave the site alone for a day. No lock: several who tidy delete the same rows."""
    LogEntry.objects.filter(action=TIDIED).delete()
    LogEntry.objects.create(action=TIDIED, target="site", data={"deleted": deleted})


def claim(action: str, each: timedelta) -> bool:
    """Whether the caller is the one that does what the site does `each` so often; noted in the log.

    No lock: of several who ask at once, one changes the entry. At the site's very first minute all
    of them may.
    """
    now = timezone.now()
    known = LogEntry.objects.filter(action=action)
    if known.filter(created_at__lte=now - each).update(created_at=now):
        return True
    if known.exists():
        return False
    LogEntry.objects.create(action=action, target="site", created_at=now)
    return True


def tidy_people(most: int) -> int:
    """Delete up to `most` ended sessions; as many traces of them, old links and log entries."""
    now = timezone.now()
    fleeting = Q()
    for start in FLEETING:
        fleeting |= Q(action__startswith=start)
    living = Session.objects.values("session_key")
    return sum(
        delete_some(rows, most)
        for rows in (
            Session.objects.filter(expire_date__lt=now),
            # Younger ones may be of a session that is being made just now.
            UserSession.objects.filter(created_at__lt=now - EACH).exclude(session_key__in=living),
            over(),
            LogEntry.objects.filter(
                fleeting, created_at__lt=now - timedelta(days=settings.KEEP_LOG_DAYS)
            ),
        )
    )
