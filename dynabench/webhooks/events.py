"""Events, found in the rows of the site's parts, which know nothing about webhooks."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from django.conf import settings
from django.urls import reverse

from core.accounts.models import User
from dynabench.notices.models import Notice
from dynabench.notices.sentences import get_address
from dynabench.webhooks.models import Webhook
from evaluation.models import Dataset, Submission
from evaluation.submissions.selectors import filter_ended_submissions
from evaluation.submissions.visibility import find_viewer
from leaderboard.models import Snapshot
from tasks.models import Round, Task
from tasks.permissions import can_review, can_see

Event = Webhook.Event


@dataclass(frozen=True)
class EventRecord:
    """An event, in the form in which deliveries store it.

    key: the same whenever the event is found again. data: ids and links, never names or labels.
    submission: the model that the event is about, or None.
    """

    event: str
    key: str
    happened_at: datetime
    task: Task
    data: dict[str, Any]
    submission: Submission | None = None


def find_events(since: datetime) -> list[EventRecord]:
    """Return the events since a time, oldest first."""
    finders = (
        _find_closed_rounds,
        _find_releases,
        _find_submissions,
        _find_snapshots,
        _find_notices,
    )
    events = chain.from_iterable(find(since) for find in finders)
    return sorted(events, key=lambda event: event.happened_at)


def may_know_event(
    user: User, event: str, task: Task | None, submission: Submission | None
) -> bool:
    """Return whether a person may learn of an event in a task, or about a submission.

    Events of a model are for its owner, its team and the task's editors. Notices are for the task's
    reviewers. Other events are for everybody who may see the task. task: None for a test event.
    """
    if not user.is_active or (task and not can_see(user, task)):
        return False
    if event == Event.NOTICE_BEGAN:
        return task is not None and can_review(user, task)
    if submission is None:
        return True
    # A published model may be seen by everybody, but only insiders learn when its runs end.
    viewer = find_viewer(user, submission)
    return viewer is not None and viewer.is_inside


def _find_closed_rounds(since: datetime) -> Iterator[EventRecord]:
    """Yield an event for each round that closed at `since` or later."""
    ended_states = Round.FINISHED_STATES
    closed_rounds = Round.objects.filter(
        closed_at__gte=since, state__in=ended_states
    ).select_related("task")
    for round in closed_rounds:
        assert round.closed_at
        code = round.task.code
        yield EventRecord(
            event=Event.ROUND_CLOSED,
            # With its time: a round that reopens closes again, which is another event.
            key=f"{Event.ROUND_CLOSED}:{round.pk}:{round.closed_at.isoformat()}",
            happened_at=round.closed_at,
            task=round.task,
            data={
                "task": code,
                "round": round.number,
                "url": _build_link("task", code),
                "api_url": _build_link("v1:round", code, round.number),
            },
        )


def _find_releases(since: datetime) -> Iterator[EventRecord]:
    """Yield an event for each release of a round that was finished at `since` or later."""
    releases = Dataset.objects.filter(finished_at__gte=since, state=Dataset.State.DONE)
    # The numbers of a release are large, and no event has them.
    for release in releases.select_related("round__task").defer("numbers"):
        assert release.finished_at
        code, number = release.round.task.code, release.round.number
        yield EventRecord(
            event=Event.ROUND_RELEASED,
            key=f"{Event.ROUND_RELEASED}:{release.pk}",
            happened_at=release.finished_at,
            task=release.round.task,
            data={
                "task": code,
                "round": number,
                "version": release.version,
                "url": _build_link("evaluation:datasets", code, number),
                "api_url": _build_link("v1:releases", code, number),
            },
        )


def _find_submissions(since: datetime) -> Iterator[EventRecord]:
    # A model that runs again, on a new set, ends again: that is another event.
    """Yield an event for each model whose check and evaluations ended at `since` or later."""
    ended_submissions = filter_ended_submissions(Submission.objects.select_related("task")).filter(
        ended_at__gte=since
    )
    for submission in ended_submissions:
        yield EventRecord(
            event=Event.SUBMISSION_FINISHED,
            key=f"{Event.SUBMISSION_FINISHED}:{submission.pk}:{submission.ended_at.isoformat()}",
            happened_at=submission.ended_at,
            task=submission.task,
            submission=submission,
            data={
                "task": submission.task.code,
                "model": str(submission.pk),
                "url": _build_link("evaluation:model", submission.pk),
                "api_url": _build_link("v1:model", submission.pk),
            },
        )


def _find_snapshots(since: datetime) -> Iterator[EventRecord]:
    """Yield an event for each leaderboard snapshot made at `since` or later."""
    snapshots = Snapshot.objects.filter(made_at__gte=since).select_related("task")
    # The whole board and the task's configuration, which no event has.
    for snapshot in snapshots.defer("table", "config_text"):
        code = snapshot.task.code
        yield EventRecord(
            event=Event.SNAPSHOT_MADE,
            key=f"{Event.SNAPSHOT_MADE}:{snapshot.pk}",
            happened_at=snapshot.made_at,
            task=snapshot.task,
            data={
                "task": code,
                "snapshot": snapshot.number,
                "url": _build_link("leaderboard:snapshot", code, snapshot.number),
                "api_url": _build_link("v1:snapshot", code, snapshot.number),
            },
        )


def _find_notices(since: datetime) -> Iterator[EventRecord]:
    """Yield an event for each task notice that opened at `since` or later."""
    new_notices = Notice.objects.filter(began_at__gte=since).select_related("task")
    for notice in new_notices:
        yield EventRecord(
            event=Event.NOTICE_BEGAN,
            key=f"{Event.NOTICE_BEGAN}:{notice.pk}",
            happened_at=notice.began_at,
            task=notice.task,
            data={
                "task": notice.task.code,
                "kind": notice.kind,
                "round": notice.round or None,
                **notice.numbers,
                "url": settings.SITE_URL + get_address(notice),
            },
        )


def _build_link(name: str, *ids: object) -> str:
    """Return the absolute URL of a page or an API endpoint."""
    return settings.SITE_URL + reverse(name, args=ids)
