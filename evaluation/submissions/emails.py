"""Send the one email that a model's owner gets, when its check and runs are over."""

import logging
from smtplib import SMTPConnectError, SMTPServerDisconnected

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import QuerySet
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from core.accounts.languages import write_in_user_language
from core.periodic import register_sweep
from evaluation.models import Submission
from evaluation.submissions.progress import describe_progress
from evaluation.submissions.selectors import filter_ended_submissions, list_runs

logger = logging.getLogger(__name__)
State = Submission.State
MAIL_SERVER_AWAY_ERRORS = (ConnectionError, TimeoutError, SMTPConnectError, SMTPServerDisconnected)


@register_sweep(why="Owners hear when their model is scored or refused.")
def send_end_emails() -> int:
    """Email the owners of models that were refused or whose last run is over.

    Returns the number of emails.

    Called by the sweep. If several sweeps run, the one whose update changes the row sends the
    email, so no lock is needed. While the mail server is away nothing is marked as sent, and the
    next sweep tries again.
    """
    sent_count = 0
    ended_submissions = filter_ended_submissions(_find_unnotified_submissions()).exclude(
        state=State.CANCELLED
    )
    for submission in ended_submissions.select_related("owner", "task"):
        row = Submission.objects.filter(pk=submission.pk)
        # Only one of several sweeps finds `told_at` empty and sends the email.
        if not (_find_unnotified_submissions() & row).update(told_at=timezone.now()):
            continue
        try:
            send_email(*_write_email(submission))
        except MAIL_SERVER_AWAY_ERRORS as error:
            logger.error("The mail server is away; mails to owners of models wait: %s", error)
            row.update(told_at=None)
            break
        sent_count += 1
    return sent_count


def _find_unnotified_submissions() -> QuerySet[Submission]:
    return Submission.objects.filter(told_at=None, withdrawn_at=None, owner__isnull=False)


def _write_email(submission: Submission) -> tuple[str, str, str]:
    """Return the subject, text and address of the email."""
    assert submission.owner
    path = reverse("evaluation:model", args=[submission.pk])

    def write_mail() -> tuple[str, str]:
        progress = describe_progress(submission, list_runs(submission))
        values = {"submission": submission, "progress": progress, "url": settings.SITE_URL + path}
        text = render_to_string("evaluation/mail.txt", values)
        return f"{submission.name}: {progress.sentence}", text

    return *write_in_user_language(submission.owner, write_mail), submission.owner.email


def send_email(subject: str, text: str, address: str) -> None:
    """Send an email. Raises one of MAIL_SERVER_AWAY_ERRORS if the mail server is away.

    Any other failure is logged, because it affects only this email.
    """
    try:
        send_mail(" ".join(subject.split()), text, None, [address])
    except MAIL_SERVER_AWAY_ERRORS:
        raise
    except Exception:  # mail servers fail in many ways, and the result is stored anyway
        logger.exception("A mail could not be sent")
