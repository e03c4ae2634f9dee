"""Following of tasks, and the emails after a round is released and its models have been run."""

import logging
from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.languages import write_in_user_language
from core.accounts.models import User
from evaluation.models import Dataset, EvaluationRun
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.submissions.emails import MAIL_SERVER_AWAY_ERRORS, send_email
from evaluation.submissions.selectors import count_models
from leaderboard.models import Follow
from tasks.models import Task
from tasks.permissions import can_see

logger = logging.getLogger(__name__)
SETTLING_TIME = timedelta(minutes=5)
"""The time after a release in which its set is made and all models' runs are requested."""


@transaction.atomic
def set_follow(*, task: Task, user: User, follows: bool) -> None:
    """Follow or unfollow a task. No lock: the constraint `follow_once` suffices."""
    if follows:
        Follow.objects.get_or_create(task=task, user=user)
    else:
        Follow.objects.filter(task=task, user=user).delete()


def email_followers() -> int:
    """Email the followers of tasks with a newly released round; return how many emails were sent.

    A worker calls it each minute. For each new release, oldest first:

    1. Wait until no model is being run on the round's set, so that the leaderboard is current.
    2. Mark the follower as notified by a conditional update: of several workers, only the one whose
       update succeeds sends the email.
    3. Send the email, unless the follower may no longer see the task.
    4. If the mail server is unavailable, remove the mark and stop; the next call tries again.

    Takes no lock.
    """
    sent_count = 0
    for dataset in _iter_released_datasets():
        for follower in _find_followers_to_mail(dataset):
            # On condition of the old value: another worker may have marked this follower first.
            unmarked = Follow.objects.filter(pk=follower.pk, told_to=follower.told_to)
            if not unmarked.update(told_to=dataset.finished_at):
                continue
            if not (follower.user.is_active and can_see(follower.user, follower.task)):
                continue
            try:
                send_email(*_write_mail(dataset, follower))
            except MAIL_SERVER_AWAY_ERRORS as error:
                logger.error("The mail server is away; mails to followers wait: %s", error)
                Follow.objects.filter(pk=follower.pk).update(told_to=follower.told_to)
                return sent_count
            sent_count += 1
    return sent_count


def _iter_released_datasets() -> Iterator[Dataset]:
    """Yield the first release of each round with followers to notify, the oldest first.

    A release whose runs are unfinished also blocks the task's later ones, so that nobody misses it.
    """
    # A later version of a release is not news.
    earlier_datasets = Dataset.objects.filter(
        round=OuterRef("round"), state=Dataset.State.DONE, version__lt=OuterRef("version")
    )
    # Everybody has heard of most releases, so the query leaves them out.
    waiting_follows = Follow.objects.filter(
        task=OuterRef("round__task"), told_to__lt=OuterRef("finished_at")
    )
    # Followers want to see how models do, so runs must be over.
    unfinished_runs = EvaluationRun.objects.filter(
        version__dataset=OuterRef("pk"), state__in=UNFINISHED_STATES
    )
    datasets = Dataset.objects.filter(
        ~Exists(earlier_datasets), Exists(waiting_follows), state=Dataset.State.DONE
    )
    datasets = datasets.annotate(is_early=Exists(unfinished_runs)).select_related("round__task")
    waiting_tasks = set()
    # A dataset's numbers are large, and emails do not show them.
    for dataset in datasets.order_by("finished_at").defer("numbers"):
        assert dataset.finished_at
        if dataset.is_early or dataset.finished_at > timezone.now() - SETTLING_TIME:
            waiting_tasks.add(dataset.round.task_id)
        elif dataset.round.task_id not in waiting_tasks:
            yield dataset


def _find_followers_to_mail(dataset: Dataset) -> list[Follow]:
    """Return the followers who have not been emailed about a release yet."""
    follows = Follow.objects.filter(task=dataset.round.task_id, told_to__lt=dataset.finished_at)
    return list(follows.select_related("user", "task"))


def _write_mail(dataset: Dataset, follower: Follow) -> tuple[str, str, str]:
    """Return the email's subject, its text in the follower's language, and their address."""
    task, number = follower.task, dataset.round.number
    names = {"task": task.name, "number": number}
    values = {
        "task": task,
        "round": number,
        "models": count_models([task]).get(task.pk, 0),
        "board_url": settings.SITE_URL + reverse("leaderboard:board", args=[task.code]),
        "data_url": settings.SITE_URL + reverse("evaluation:datasets", args=[task.code, number]),
        "task_url": settings.SITE_URL + reverse("task", args=[task.code]),
    }

    def write_text() -> tuple[str, str]:
        text = render_to_string("leaderboard/follow_mail.txt", values)
        return _("%(task)s: round %(number)d is released") % names, text

    return *write_in_user_language(follower.user, write_text), follower.user.email
