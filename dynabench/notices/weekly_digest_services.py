"""Sends the summary on Mondays to people who asked for it."""

import logging
from datetime import UTC, datetime, time

from django.conf import settings
from django.core import signing
from django.core.mail import EmailMessage
from django.db.models import Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from core.accounts.languages import activate_user_language
from core.accounts.models import User
from core.accounts.services import get_annotator
from core.periodic import register_quarter_hourly
from dynabench.notices.digest_services import LINK_SALT
from dynabench.notices.models import Digest
from dynabench.notices.news import build_user_filter
from dynabench.notices.weekly_digest import WeekSummary, summarise_week
from evaluation.submissions.emails import MAIL_SERVER_AWAY_ERRORS
from leaderboard.people.goals import find_monday
from tasks.mails import build_unsubscribe_headers

logger = logging.getLogger(__name__)
WEEKLY = "weekly"
"""The name of the summary's switch in URLs and forms."""


@register_quarter_hourly(
    counts="weekly summaries sent", why="People asked for one mail on Mondays."
)
def send_weekly() -> int:
    """Email a summary of the past week, on Mondays (UTC), to the people who asked for it.

    Return how many were sent. Takes no lock: the worker whose update succeeds sends the email. A
    week without work gets no email.
    """
    now = timezone.now()
    if now.astimezone(UTC).weekday() != 0:
        return 0
    monday = datetime.combine(find_monday(now.astimezone(UTC).date()), time(), UTC)
    sent_count = 0
    is_due = Q(weekly_at=None) | Q(weekly_at__lt=monday)
    due_digests = Digest.objects.filter(is_due, build_user_filter("user", None), is_weekly=True)
    for digest in due_digests.select_related("user"):
        # The same condition again, which holds for one of several workers.
        if Digest.objects.filter(is_due, pk=digest.pk, is_weekly=True).update(weekly_at=now):
            try:
                sent_count += _send_summary(digest.user, monday)
            except MAIL_SERVER_AWAY_ERRORS as error:
                logger.error("The mail server is unavailable, so summaries wait: %s", error)
                # Given back, so that the next call sends it.
                Digest.objects.filter(pk=digest.pk).update(weekly_at=digest.weekly_at)
                return sent_count
            except Exception:  # mail servers fail in many ways, and no other mail may wait for it
                logger.exception("A weekly summary could not be sent")
    return sent_count


def _send_summary(user: User, monday: datetime) -> int:
    """Send one person's summary. Return 1, or 0 if the person did nothing that week."""
    with activate_user_language(user):
        summary = summarise_week(get_annotator(user), monday)
        if summary is None:
            return 0
        _build_weekly_mail(user, summary).send()
    return 1


def _build_weekly_mail(user: User, summary: WeekSummary) -> EmailMessage:
    token = signing.dumps(user.pk, salt=LINK_SALT)
    off_link = f"{settings.SITE_URL}{reverse('notices-off', args=[token])}?kind={WEEKLY}"
    write_link = ""
    # Only where a round is open, so that nobody is sent to a closed door.
    if summary.task:
        write_page = reverse("annotation:write", args=[summary.task.code])
        write_link = f"{settings.SITE_URL}{write_page}"
    values = {"summary": summary, "write": write_link, "off": off_link}
    text = render_to_string("notices/weekly.txt", values)
    headers = build_unsubscribe_headers(off_link)
    return EmailMessage(summary.headline, text, None, [user.email], headers=headers)


def set_weekly_summary(*, user: User, is_wanted: bool) -> None:
    """Store whether the person wants the summary on Mondays.

    Takes no lock: the last change wins.
    """
    Digest.objects.update_or_create(user=user, defaults={"is_weekly": is_wanted})
