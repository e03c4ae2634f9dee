"""Delete ended sessions, expired links and old log entries."""

from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Q
from django.utils import timezone

from core.accounts.models import LogEntry
from core.accounts.undo_services import select_expired_undos
from core.data.rows import delete_in_batches
from core.periodic import register_daily_tidying

SHORT_LIVED_ACTIONS = ("token.", "webhook.", "submission.", "run.")
"""Prefixes of actions on a person's own objects. Their log entries are deleted after a time.

Entries about tasks, rounds and data stay, because they are part of the history.
"""
DAY = timedelta(days=1)


@register_daily_tidying(why="Sessions and traces of people are kept for a limited time.")
def tidy_account_data(limit: int) -> int:
    """Delete ended sessions with their traces, expired links and old log entries; return how many.

    limit: the maximum number of rows of each kind, so that no call takes long.
    """
    now = timezone.now()
    ended_sessions = Session.objects.filter(expire_date__lt=now)
    # The trace of a session that is being made just now is there before the session.
    session_traces = UserSession.objects.filter(created_at__lt=now - DAY).exclude(
        session_key__in=Session.objects.values("session_key")
    )
    short_lived_filter = Q()
    for prefix in SHORT_LIVED_ACTIONS:
        short_lived_filter |= Q(action__startswith=prefix)
    oldest_kept_time = now - timedelta(days=settings.KEEP_LOG_DAYS)
    old_entries = LogEntry.objects.filter(short_lived_filter, created_at__lt=oldest_kept_time)
    deleted_count = 0
    for rows in (ended_sessions, session_traces, select_expired_undos(), old_entries):
        deleted_count += delete_in_batches(rows, limit)
    return deleted_count
