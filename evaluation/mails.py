"""The mail that a model's owner gets when nothing of it is under way any more."""

import logging
from functools import partial
from uuid import UUID

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from evaluation.model_page import progress_of, runs_of
from evaluation.models import Submission

logger = logging.getLogger(__name__)


@transaction.atomic
def tell_end(submission_id: UUID) -> None:
    """Mail the owner once, when the check has refused a model or the last run is over.

    No lock: of several that see the end, one update decides who mails. It is sent after the commit;
    what the mail server then says is logged.
    """
    waiting = Submission.objects.filter(pk=submission_id, told_at=None, withdrawn_at=None)
    submission = waiting.select_related("owner", "task").first()
    if submission is None or submission.owner is None:
        return
    runs = runs_of(submission)
    progress = progress_of(submission, runs)
    nothing_came = not runs and submission.state == Submission.State.DONE
    if not progress.is_over or nothing_came or submission.state == Submission.State.CANCELLED:
        return
    if waiting.update(told_at=timezone.now()):
        path = reverse("evaluation:model", args=[submission.pk])
        values = {"submission": submission, "progress": progress, "url": settings.SITE_URL + path}
        subject = f"{submission.name}: {progress.sentence}".strip()
        text = render_to_string("evaluation/mail.txt", values)
        transaction.on_commit(partial(_send, subject, text, submission.owner.email))


def _send(subject: str, text: str, address: str) -> None:
    try:
        send_mail(" ".join(subject.split()), text, None, [address])
    except Exception:  # a mail server may fail in many ways, and the model is none the worse
        logger.exception("No mail could be sent about a submission")
