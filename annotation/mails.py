"""The mail to reviewers about new reports."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Report
from core.periodic import register_sweep
from tasks.mails import mail_members
from tasks.models import Task
from tasks.permissions import REVIEWERS

MAIL_INTERVAL = timedelta(hours=1)


@register_sweep(why="Moderators hear of reports within an hour.")
def mail_reports() -> int:
    """Email reviewers about new reports, at most hourly per task; return the number of tasks.

    Called by the sweep. Takes no lock: of several sweeps, only the one whose update succeeds sends
    emails.
    """
    now = timezone.now()
    reports = Report.objects.filter(context__round__task=OuterRef("pk"))
    # One mail covers all reports of an hour.
    was_mailed_recently = Exists(reports.filter(told_at__gt=now - MAIL_INTERVAL))
    has_unmailed_reports = Exists(reports.filter(told_at=None, resolved_at=None))
    return sum(
        _mail_reviewers(task, now)
        for task in Task.objects.filter(has_unmailed_reports, ~was_mailed_recently)
    )


def _select_unmailed_reports(task: Task) -> QuerySet[Report]:
    return Report.objects.filter(context__round__task=task, told_at=None, resolved_at=None)


@transaction.atomic
def _mail_reviewers(task: Task, now: datetime) -> bool:
    report_ids = list(_select_unmailed_reports(task).values_list("pk", flat=True))
    # Of two sweeps at once the second finds none left, and mails nobody.
    count = Report.objects.filter(pk__in=report_ids, told_at=None).update(told_at=now)
    if not count:
        return False
    values = {"task": task.name, "count": count}

    def write_mail() -> tuple[str, str]:
        subject = ngettext(
            "%(task)s: %(count)d new report", "%(task)s: %(count)d new reports", count
        )
        lines = [
            _("People reported problems with texts in %(task)s.") % values,
            _("Read the reports, then keep or retire each text:"),
            settings.SITE_URL + reverse("own:reports", args=[task.code]),
        ]
        return subject % values, "\n\n".join(lines) + "\n"

    mail_members(task, REVIEWERS, write_mail)
    return True
