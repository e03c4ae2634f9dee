"""Following a task, and the mail when a round of it is released and its models have been run."""

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

from core.accounts.languages import write_in_language_of
from core.accounts.models import User
from evaluation.models import Dataset, EvaluationRun
from evaluation.submissions.emails import AWAY, send
from evaluation.submissions.selectors import count_models
from leaderboard.models import Follow
from tasks.models import Task
from tasks.permissions import can_see

logger = logging.getLogger(__name__)
State = EvaluationRun.State
SETTLING = timedelta(minutes=5)
"""From the release until its evaluation set is made and every model's run is asked for."""


@transaction.atomic
def follow(*, task: Task, user: User, follows: bool) -> None:
    """Begin or end to follow a task; no lock: `follow_once` holds."""
    if follows:
        Follow.objects.get_or_create(task=task, user=user)
    else:
        Follow.objects.filter(task=task, user=user).delete()


def tell_followers() -> int:
    """Mail the followers of tasks with a newly released round; how many mails.

    It waits until no model is run on the round's set any more, so that the leaderboard is current.
    A worker calls it each minute. No lock: of several workers, the one whose update hits mails.
    While the mail server is away nobody gets a mail; the next call tries again.
    """
    sent = 0
    for dataset in _released():
        for one in _untold(dataset):
            mine = Follow.objects.filter(pk=one.pk, told_to=one.told_to)
            if not mine.update(told_to=dataset.finished_at):
                continue
            if not (one.user.is_active and can_see(one.user, one.task)):
                continue
            try:
                send(*_mail(dataset, one))
            except AWAY as error:
                logger.error("The mail server is away; mails to followers wait: %s", error)
                Follow.objects.filter(pk=one.pk).update(told_to=one.told_to)
                return sent
            sent += 1
    return sent


def _released() -> Iterator[Dataset]:
    """Yield the first release of each round that a follower may not know yet, the oldest first.

    After a release whose runs are not over, none of that task follows: so nobody misses that one.
    """
    earlier = Dataset.objects.filter(
        round=OuterRef("round"), state=Dataset.State.DONE, version__lt=OuterRef("version")
    )
    waiting = Follow.objects.filter(
        task=OuterRef("round__task"), told_to__lt=OuterRef("finished_at")
    )
    under_way = EvaluationRun.objects.filter(
        version__dataset=OuterRef("pk"), state__in=[State.QUEUED, State.RUNNING]
    )
    found = Dataset.objects.filter(~Exists(earlier), Exists(waiting), state=Dataset.State.DONE)
    found = found.annotate(is_early=Exists(under_way)).select_related("round__task")
    held = set()
    for dataset in found.order_by("finished_at").defer("numbers"):
        assert dataset.finished_at
        if dataset.is_early or dataset.finished_at > timezone.now() - SETTLING:
            held.add(dataset.round.task_id)
        elif dataset.round.task_id not in held:
            yield dataset


def _untold(dataset: Dataset) -> list[Follow]:
    found = Follow.objects.filter(task=dataset.round.task_id, told_to__lt=dataset.finished_at)
    return list(found.select_related("user", "task"))


def _mail(dataset: Dataset, one: Follow) -> tuple[str, str, str]:
    """Return subject and text, in the follower's language, and address."""
    task, number = one.task, dataset.round.number
    names = {"task": task.name, "number": number}
    values = {
        "task": task,
        "round": number,
        "models": count_models([task]).get(task.pk, 0),
        "board_url": settings.SITE_URL + reverse("leaderboard:board", args=[task.code]),
        "data_url": settings.SITE_URL + reverse("evaluation:datasets", args=[task.code, number]),
        "task_url": settings.SITE_URL + reverse("task", args=[task.code]),
    }

    def write() -> tuple[str, str]:
        text = render_to_string("leaderboard/follow_mail.txt", values)
        return _("%(task)s: round %(number)d is released") % names, text

    return *write_in_language_of(one.user, write), one.user.email
