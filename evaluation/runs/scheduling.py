"""Whose run comes next: no one's many runs keep another's waiting."""

import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Max, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

from dynabench.lib.queue import enqueue
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun
from evaluation.queue import leases

EVALUATE = "evaluation.jobs.evaluate_next"
State, Suite = EvaluationRun.State, EvaluationRun.Suite
# On top of the model's own time: writing the inputs, starting, scoring a million answers.
OVERHEAD = timedelta(minutes=30)
GRACE = timedelta(minutes=2)  # after its deadline a run is ended by the sweep
RECENT = timedelta(days=1)  # an owner served before that counts as never served
LAST = 20  # runs that tell how long the next one will take
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Waiting:
    """A run that waits. owner: None is the platform itself."""

    pk: Any
    owner: int | None
    priority: int  # higher first
    queued_at: datetime


@dataclass(frozen=True)
class Served:
    """What an owner has had: runs that run now, and when the last one began."""

    running: int = 0
    last: datetime = LONG_AGO


def in_turn(waiting: Iterable[Waiting], served: Mapping[int | None, Served]) -> list[Waiting]:
    """The runs in the order in which free workers take them.

    By priority; then the owner with the fewest runs under way, among equals the one whose last
    run began longest ago; an owner's own runs by age.
    """
    keyed: list[tuple[tuple[int, int, datetime, datetime], Waiting]] = []
    ahead: Counter[int | None] = Counter()
    for run in sorted(waiting, key=lambda run: (-run.priority, run.queued_at)):
        had = served.get(run.owner, Served())
        place = had.running + ahead[run.owner]
        ahead[run.owner] += 1
        keyed.append(((-run.priority, place, had.last, run.queued_at), run))
    return [run for _, run in sorted(keyed, key=lambda pair: pair[0])]


def claim_next() -> EvaluationRun | None:
    """Take the run whose turn it is; None when none is ready. No lock.

    Where another worker was quicker the order is looked up again, because it counts that run now.
    """
    seconds = timedelta(seconds=settings.EVALUATION_SECONDS)
    while turn := _in_turn(EvaluationRun.objects.filter(leases.ready(EvaluationRun))):
        run = leases.claim(
            EvaluationRun,
            turn[0].pk,
            deadline_at=timezone.now() + seconds + OVERHEAD,
            host=socket.gethostname()[:100],
        )
        if run:
            return run
    return None


def _in_turn(runs: QuerySet[EvaluationRun]) -> list[Waiting]:
    """Runs in the order in which workers take them; two queries."""
    rows = runs.values_list("pk", "submission__owner", "priority", "queued_at")
    recent = Q(state=State.RUNNING) | Q(started_at__gt=timezone.now() - RECENT)
    served = (
        EvaluationRun.objects.filter(recent, started_at__isnull=False)
        .order_by()
        .values("submission__owner")
        .annotate(n=Count("pk", filter=Q(state=State.RUNNING)), last=Max("started_at"))
        .values_list("submission__owner", "n", "last")
    )
    return in_turn(
        [Waiting(*row) for row in rows],
        {owner: Served(running, last) for owner, running, last in served},
    )


def queue_positions() -> dict[UUID, int]:
    """By its id for each run that waits: how many are taken until it is, itself counted."""
    queued = EvaluationRun.objects.filter(state=State.QUEUED)
    return {waiting.pk: number for number, waiting in enumerate(_in_turn(queued), 1)}


def expected_wait_seconds(position: int | None) -> float | None:
    """How long until a run at this position begins, as the last runs took; None: not known."""
    last = EvaluationRun.objects.filter(started_at__isnull=False, finished_at__isnull=False)
    times = last.order_by("-finished_at").values_list("started_at", "finished_at")[:LAST]
    took = [(end - start).total_seconds() for start, end in times if start and end]
    if position is None or not took:
        return None
    workers = EvaluationRun.objects.filter(state=State.RUNNING).count()
    return position * fmean(took) / max(1, workers)


def ring_suites(run: EvaluationRun) -> None:
    """Ring for the perturbed runs that waited for this plain one."""
    if run.suite == Suite.PLAIN:
        waiting = EvaluationRun.objects.filter(
            submission=run.submission_id, version=run.version_id, state=State.QUEUED
        )
        for pk in waiting.values_list("pk", flat=True):
            enqueue(EVALUATE, pk)


def overdue() -> dict[str, str]:
    """The columns of a run that had not ended at its deadline."""
    return {
        "outcome": Outcome.TIMEOUT,
        "limit": f"{settings.EVALUATION_SECONDS / 60:g} minutes",
        "measured": gettext_noop("not done at its deadline"),
        "error": gettext_noop("The run had not ended at its deadline and was stopped."),
    }


def end_overdue() -> int:
    """End runs whose deadline passed `GRACE` ago; returns how many. No lock.

    Their worker lives, or its lease would have run out, but did not end them itself.
    """
    late = EvaluationRun.objects.filter(deadline_at__lt=timezone.now() - GRACE)
    return leases.end_overdue(late, **overdue())
