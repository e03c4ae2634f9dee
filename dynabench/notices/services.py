"""Writes about notices: when one opens and ends, and what a person has seen of their news."""

from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from core.accounts.models import User
from dynabench.notices.facts import find_due_notices
from dynabench.notices.models import Digest, Notice


def note_news_seen(*, user: User, now: datetime) -> None:
    """Record that the person has just looked at their news. Takes no lock: the last look wins."""
    Digest.objects.update_or_create(user=user, defaults={"seen_at": now})


def note_announced_catch(*, user: User, decided_at: datetime) -> bool:
    """Record that a page announces a confirmed catch; return False if another page has.

    decided_at: when the catch was confirmed. Takes no lock: the update's condition lets only one of
    two pages announce it.
    """
    Digest.objects.get_or_create(user=user)
    is_new = Q(caught_at=None) | Q(caught_at__lt=decided_at)
    return bool(Digest.objects.filter(is_new, user=user).update(caught_at=decided_at))


def renew_notices() -> None:
    """Open notices that are due, update the numbers of open ones, and end the others.

    Takes no lock: the unique constraint `notice_one_open` keeps two workers from opening the same
    notice twice.
    """
    now = timezone.now()
    due_notices = find_due_notices(now)
    open_notices = {
        (notice.task_id, notice.kind, notice.round): notice
        for notice in Notice.objects.filter(ended_at=None)
    }
    ended_ids = [notice.pk for key, notice in open_notices.items() if key not in due_notices]
    Notice.objects.filter(pk__in=ended_ids).update(ended_at=now)
    changed_notices = []
    for key, row in open_notices.items():
        if key in due_notices and row.numbers != due_notices[key]:
            row.numbers = due_notices[key]
            changed_notices.append(row)
    Notice.objects.bulk_update(changed_notices, ["numbers"])
    new_notices = [
        Notice(task_id=task, kind=kind, round=round, numbers=numbers)
        for (task, kind, round), numbers in due_notices.items()
        if (task, kind, round) not in open_notices
    ]
    # A second worker finds the same notices due; the constraint keeps one open of each.
    Notice.objects.bulk_create(new_notices, ignore_conflicts=True)
