"""The one mail that a model's owner gets, when nothing of it is under way any more."""

import logging
from functools import partial

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import QuerySet
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone

from evaluation.model_page import ended, progress_of, runs_of
from evaluation.models import Submission

logger = logging.getLogger(__name__)
State = Submission.State


def tell_ends() -> int:
    """Mail the owners of models whose check has refused them or whose last run is over; how many.

    The sweep calls it, so it does not matter who saw the end.
    """
    over = ended(_untold()).exclude(state=State.CANCELLED)
    return sum(_tell(submission) for submission in over.select_related("owner", "task"))


def _untold() -> QuerySet[Submission]:
    return Submission.objects.filter(told_at=None, withdrawn_at=None, owner__isnull=False)


@transaction.atomic
def _tell(submission: Submission) -> bool:
    """Mail after the commit. No lock: of several sweeps, the one whose update hits mails."""
    won = _untold().filter(pk=submission.pk).update(told_at=timezone.now())
    if won and submission.owner:
        progress = progress_of(submission, runs_of(submission))
        path = reverse("evaluation:model", args=[submission.pk])
        values = {"submission": submission, "progress": progress, "url": settings.SITE_URL + path}
        text = render_to_string("evaluation/mail.txt", values)
        subject = f"{submission.name}: {progress.sentence}"
        transaction.on_commit(partial(_send, subject, text, submission.owner.email))
    return bool(won)


def _send(subject: str, text: str, address: str) -> None:
    try:
        send_mail(" ".join(subject.split()), text, None, [address])
    except Exception:  # mail servers fail in many ways, and the model is none the worse
        logger.exception("No mail could be sent about a submission")
