"""What happened, found by looking at the rows of the stages: nothing below knows of webhooks."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from core.accounts.models import User
from dynabench.notices.models import Notice
from dynabench.notices.said import address
from dynabench.webhooks.models import Webhook
from evaluation.models import Dataset, Submission
from evaluation.submissions.selectors import ended
from evaluation.submissions.visibility import viewer_of
from leaderboard.models import Snapshot
from tasks.models import Round, Task
from tasks.permissions import can_review, can_see

Event = Webhook.Event


@dataclass(frozen=True)
class Happened:
    """One event, as deliveries hold it.

    key: the same each time that it is found; data: ids and links, never names or labels.
    """

    event: str
    key: str
    happened_at: datetime
    task: Task
    data: dict[str, Any]
    submission: Submission | None = None


def happened(since: datetime) -> list[Happened]:
    """The events from a time on, the oldest first."""
    found = [*_rounds(since), *_releases(since), *_submissions(since)]
    found += [*_snapshots(since), *_notices(since)]
    return sorted(found, key=lambda one: one.happened_at)


def may_know(user: User, event: str, task: Task | None, submission: Submission | None) -> bool:
    """Whether the person may be told of something in the task, or of this model in it.

    A model's owner, its team and the task's editors may know of it; of notices, those who run the
    task. No task: a test, for its own person.
    """
    if not user.is_active or (task and not can_see(user, task)):
        return False
    if event == Event.NOTICE_BEGAN:
        return task is not None and can_review(user, task)
    if submission is None:
        return True
    viewer = viewer_of(user, submission)
    return viewer is not None and viewer.is_inside


def _rounds(since: datetime) -> Iterator[Happened]:
    over = [Round.State.CLOSED, Round.State.RELEASED]
    closed = Round.objects.filter(closed_at__gte=since, state__in=over).select_related("task")
    for one in closed:
        assert one.closed_at
        code = one.task.code
        yield Happened(
            event=Event.ROUND_CLOSED,
            key=f"{Event.ROUND_CLOSED}:{one.pk}:{one.closed_at.isoformat()}",  # it may reopen
            happened_at=one.closed_at,
            task=one.task,
            data={
                "task": code,
                "round": one.number,
                "url": _link("task", code),
                "api_url": _link("v1:round", code, one.number),
            },
        )


def _releases(since: datetime) -> Iterator[Happened]:
    made = Dataset.objects.filter(finished_at__gte=since, state=Dataset.State.DONE)
    for one in made.select_related("round__task").defer("numbers"):
        assert one.finished_at
        code, number = one.round.task.code, one.round.number
        yield Happened(
            event=Event.ROUND_RELEASED,
            key=f"{Event.ROUND_RELEASED}:{one.pk}",
            happened_at=one.finished_at,
            task=one.round.task,
            data={
                "task": code,
                "round": number,
                "version": one.version,
                "url": _link("evaluation:datasets", code, number),
                "api_url": _link("v1:releases", code, number),
            },
        )


def _submissions(since: datetime) -> Iterator[Happened]:
    # A model that runs again, on a new set, ends again: that is another event.
    over = ended(Submission.objects.select_related("task")).filter(ended_at__gte=since)
    for one in over:
        yield Happened(
            event=Event.SUBMISSION_FINISHED,
            key=f"{Event.SUBMISSION_FINISHED}:{one.pk}:{one.ended_at.isoformat()}",
            happened_at=one.ended_at,
            task=one.task,
            submission=one,
            data={
                "task": one.task.code,
                "model": str(one.pk),
                "url": _link("evaluation:model", one.pk),
                "api_url": _link("v1:model", one.pk),
            },
        )


def _snapshots(since: datetime) -> Iterator[Happened]:
    made = Snapshot.objects.filter(made_at__gte=since).select_related("task").defer("table")
    for one in made:
        code = one.task.code
        yield Happened(
            event=Event.SNAPSHOT_MADE,
            key=f"{Event.SNAPSHOT_MADE}:{one.pk}",
            happened_at=one.made_at,
            task=one.task,
            data={
                "task": code,
                "snapshot": one.number,
                "url": _link("leaderboard:snapshot", code, one.number),
                "api_url": _link("v1:snapshot", code, one.number),
            },
        )


def _notices(since: datetime) -> Iterator[Happened]:
    began = Notice.objects.filter(began_at__gte=since).select_related("task")
    for one in began:
        yield Happened(
            event=Event.NOTICE_BEGAN,
            key=f"{Event.NOTICE_BEGAN}:{one.pk}",
            happened_at=one.began_at,
            task=one.task,
            data={
                "task": one.task.code,
                "kind": one.kind,
                "round": one.round or None,
                **one.numbers,
                "url": settings.SITE_URL + address(one),
            },
        )


def _link(name: str, *ids: object) -> str:
    """Where people or programs read of it."""
    return settings.SITE_URL + reverse(name, args=ids)
