"""Ended sessions, and old entries of the log, are deleted."""

from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Q
from django.utils import timezone

from core.accounts.models import LogEntry
from core.accounts.undo_services import over
from core.data.rows import delete_some
from core.periodic import tidied_daily

FLEETING = ("token.", "webhook.", "submission.", "run.")
"""Actions on what is one's own; those on tasks, rounds and data are part of their history."""
DAY = timedelta(days=1)


@tidied_daily(why="Sessions and traces of people are kept for a limited time.")
def tidy_people(limit: int) -> int:
    """Delete ended sessions with their traces, expired links and old log entries; return how many.

    Deletes at most `limit` rows of each kind, so that no call takes long.
    """
    now = timezone.now()
    ended_sessions = Session.objects.filter(expire_date__lt=now)
    # The trace of a session that is being made just now is there before the session.
    traces = UserSession.objects.filter(created_at__lt=now - DAY).exclude(
        session_key__in=Session.objects.values("session_key")
    )
    fleeting_filter = Q()
    for start in FLEETING:
        fleeting_filter |= Q(action__startswith=start)
    kept_since = now - timedelta(days=settings.KEEP_LOG_DAYS)
    old_entries = LogEntry.objects.filter(fleeting_filter, created_at__lt=kept_since)
    deleted_count = 0
    for rows in (ended_sessions, traces, over(), old_entries):
        deleted_count += delete_some(rows, limit)
    return deleted_count
