"""Record failures of targets while people write, and mail those who can fix them."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Q, Value, When
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core.periodic import register_sweep
from tasks.mails import mail_members
from tasks.models import TargetFailure, TargetModel, Task
from tasks.permissions import EDITORS
from tasks.targets.connect import get_secret
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.send_test import mask_secret

FAILURE_LIFETIME = timedelta(hours=24)
FAILURES_TO_MAIL = 3
MAIL_INTERVAL = timedelta(hours=24)


def note_failure(target: TargetModel, error: EndpointError) -> None:
    """Count a failure of a target. The count restarts after a day without failures. No lock."""
    now = timezone.now()
    detail = mask_secret(get_secret(target), str(error))[:500]
    # 1. Make sure of the row. Two threads may create it at once, and one gets the other's.
    TargetFailure.objects.get_or_create(target=target, defaults={"last_at": now, "since": now})
    was_long_ago = Q(last_at__lt=now - FAILURE_LIFETIME)
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
        target__task=task, last_at__gte=timezone.now() - FAILURE_LIFETIME
    )
    return list(failures.select_related("target").order_by("-last_at"))


@register_sweep(why="Owners hear when a target keeps failing.")
def mail_failures() -> int:
    """Mail owners and editors about failing targets, once a day per target; return how many.

    Takes no lock: of several sweeps, only the one whose update succeeds sends the mail.
    """
    now = timezone.now()
    unmailed_failures = _find_unmailed_failures(now).select_related("target__task")
    return sum(_mail_failure(failure, now) for failure in unmailed_failures)


def _find_unmailed_failures(now: datetime):  # type: ignore[no-untyped-def]
    # A wrong setting never mends itself. Other failures may be over after a minute.
    owner_condition = Q(reason="misconfigured") | Q(count__gte=FAILURES_TO_MAIL)
    due_condition = Q(told_at=None) | Q(told_at__lt=now - MAIL_INTERVAL)
    return TargetFailure.objects.filter(
        owner_condition, due_condition, last_at__gte=now - FAILURE_LIFETIME
    )


@transaction.atomic
def _mail_failure(failure: TargetFailure, now: datetime) -> bool:
    # The condition is part of the update: of several sweepers one hits the row, and only it mails.
    if not _find_unmailed_failures(now).filter(pk=failure.pk).update(told_at=now):
        return False
    target, task = failure.target, failure.target.task
    values = {"target": target.name, "task": task.name, "count": failure.count}

    def write() -> tuple[str, str]:
        subject = _("%(task)s: the model %(target)s is failing") % values
        lines = [
            ngettext(
                "%(target)s failed once while people wrote for %(task)s. The error:",
                "%(target)s failed %(count)d times while people wrote for %(task)s. The last "
                "error:",
                failure.count,
            )
            % values,
            failure.detail,
            _("People get no verdict until the model works again. Fix it or pause the round:"),
            settings.SITE_URL + reverse("own:rounds", args=[task.code]),
        ]
        return subject, "\n\n".join(lines) + "\n"

    mail_members(task, EDITORS, write)
    return True
