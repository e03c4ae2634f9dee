"""Failures of targets while people write, and mails to those who can fix them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Q, Value, When
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from core.periodic import each_sweep
from tasks.mails import mail_members
from tasks.models import TargetFailure, TargetModel, Task
from tasks.permissions import EDITORS
from tasks.targets.connect import get_secret
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.send_test import mask_secret

FORGET_AFTER = timedelta(hours=24)
FAILURES_TO_MAIL = 3
MAIL_AGAIN_AFTER = timedelta(hours=24)


def note_failure(target: TargetModel, error: EndpointError) -> None:
    """Count a failure. The count restarts after a day without failures. One update, no lock."""
    now = timezone.now()
    detail = mask_secret(get_secret(target), str(error))[:500]
    # 1. Make sure of the row. Two threads may create it at once, and one gets the other's.
    TargetFailure.objects.get_or_create(target=target, defaults={"last_at": now, "since": now})
    was_long_ago = Q(last_at__lt=now - FORGET_AFTER)
    # 2. Count in the database, since many people may see the same failure at once.
    TargetFailure.objects.filter(target=target).update(
        count=Case(When(was_long_ago, then=Value(1)), default=F("count") + 1),
        since=Case(When(was_long_ago, then=Value(now)), default=F("since")),
        last_at=now,
        reason=error.reason,
        detail=detail,
    )


def find_failures(task: Task) -> Sequence[TargetFailure]:
    """Return the failures of the task's targets within the last day, latest first."""
    failures = TargetFailure.objects.filter(
        target__task=task, last_at__gte=timezone.now() - FORGET_AFTER
    )
    return list(failures.select_related("target").order_by("-last_at"))


@each_sweep(why="Owners hear when a target keeps failing.")
def mail_failures() -> int:
    """Mail owners and editors about failing targets, once a day per target; return how many.

    Called by the sweep. No lock: of several sweeps, only the one whose update succeeds sends mail.
    """
    now = timezone.now()
    untold = _find_unmailed(now).select_related("target__task")
    return sum(_mail_failure(failure, now) for failure in untold)


def _find_unmailed(now: datetime):  # type: ignore[no-untyped-def]
    # A wrong setting never mends itself. Other failures may be over after a minute.
    mended_only_by_owners = Q(reason="misconfigured") | Q(count__gte=FAILURES_TO_MAIL)
    fresh = Q(told_at=None) | Q(told_at__lt=now - MAIL_AGAIN_AFTER)
    return TargetFailure.objects.filter(
        mended_only_by_owners, fresh, last_at__gte=now - FORGET_AFTER
    )


@transaction.atomic
def _mail_failure(failure: TargetFailure, now: datetime) -> bool:
    # The condition is part of the update: of several sweepers one hits the row, and only it mails.
    if not _find_unmailed(now).filter(pk=failure.pk).update(told_at=now):
        return False
    target, task = failure.target, failure.target.task
    values = {"target": target.name, "task": task.name, "count": failure.count}

    def write() -> tuple[str, str]:
        subject = _("%(task)s: the target %(target)s fails") % values
        lines = [
            _("%(target)s failed %(count)d times while people wrote for %(task)s. It said last:")
            % values,
            failure.detail,
            _("Meanwhile nobody gets a verdict. Mend the target, or pause the round, here:"),
            settings.SITE_URL + reverse("own:rounds", args=[task.code]),
        ]
        return subject, "\n\n".join(lines) + "\n"

    mail_members(task, EDITORS, write)
    return True
