"""The present work of the site, counted at most once a minute for monitors and people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.core.cache import cache
from django.db.models import Count, Min, Q
from django.utils import timezone

from core.data.adaptive_cache import read_or_count
from core.jobs.models import Incident, LastSuccess
from core.versions import version
from dynabench.operations.soundness.health import check_model_server
from evaluation.isolation.queue.leases import claimable, job_models
from evaluation.models import EvaluationRun, Job
from tasks.models import Round, TargetModel
from tasks.targets.circuit_breaker.breaker import find_open_breakers
from validation.decisions.awaited import JUDGED_STATES
from validation.models import QueueItem

RECENT_PERIOD = timedelta(hours=1)
CACHE_KEY = f"site-facts-{version()}"
"""In the cache, where another version's facts may lie too, of another shape."""


@dataclass(frozen=True)
class JobFacts:
    """The numbers of jobs of one kind. oldest_at: when the longest waiting job was queued."""

    waiting: int
    running: int
    oldest_at: datetime | None


class TargetFacts(NamedTuple):
    """A target of an open round.

    code, task: code and name of its task. is_seen: whether the task is public. url: empty if our
    server runs the target.
    """

    pk: int
    name: str
    code: str
    task: str
    is_seen: bool
    url: str


@dataclass(frozen=True)
class Facts:
    """The numbers behind the monitoring endpoint and the status page.

    jobs: by kind. ended: evaluations of the past hour by outcome. to_judge: number of examples that
    need votes, by task. successes: last success of each scheduled job. incident: the latest, or
    None. is_server_away: whether our model server is down.
    """

    counted_at: datetime

    jobs: Mapping[str, JobFacts]
    ended: Mapping[str, int]
    to_judge: Mapping[str, int]
    targets: Sequence[TargetFacts]
    successes: Mapping[str, datetime]
    incident: Incident | None
    is_server_away: bool


def count_facts() -> Facts:
    """Return the facts, from the cache if they were counted within a minute.

    As many queries as there are kinds of jobs, and four more.
    """
    # Kept for a minute in the cache, for all processes.
    return read_or_count(CACHE_KEY, _count)


def read_last_facts() -> Facts | None:
    """Return the latest facts in the cache, up to a day old, for when the database is down."""
    entry = cache.get(CACHE_KEY)
    if not entry:
        return None
    facts_then: Facts = entry.numbers
    return facts_then


def find_paused_targets(site: Facts) -> set[int]:
    """Return the primary keys of targets that failed too often and are not called for a while."""
    return set(map(int, find_open_breakers(cache, [str(target.pk) for target in site.targets])))


def _count() -> Facts:
    # By outcome: a monitor warns when the platform fails many.
    recent = EvaluationRun.objects.filter(finished_at__gte=timezone.now() - RECENT_PERIOD)
    to_judge = QueueItem.objects.filter(round__state__in=JUDGED_STATES, still_needed__gt=0)
    targets = TargetModel.objects.filter(rounds__state=Round.State.OPEN).distinct()
    of_target = targets.values_list(
        "pk", "name", "task__code", "task__name", "task__is_visible", "url"
    )
    return Facts(
        counted_at=timezone.now(),
        jobs={kind._meta.model_name or "": _count_jobs(kind) for kind in job_models()},
        ended=dict(recent.order_by().values_list("outcome").annotate(Count("pk"))),
        to_judge=dict(to_judge.values_list("round__task__code").annotate(Count("pk"))),
        targets=[TargetFacts(*row) for row in of_target.order_by("task__name", "name")],
        successes=dict(LastSuccess.objects.values_list("job", "succeeded_at")),
        incident=Incident.objects.first(),
        is_server_away=check_model_server().state == "bad",
    )


def _count_jobs(kind: type[Job]) -> JobFacts:
    is_waiting, state = claimable(kind), Job.State
    unfinished = kind._default_manager.filter(state__in=[state.QUEUED, state.RUNNING])
    counts = unfinished.aggregate(
        waiting=Count("pk", filter=is_waiting),
        running=Count("pk", filter=Q(state=state.RUNNING)),
        oldest_at=Min("queued_at", filter=is_waiting),
    )
    return JobFacts(**counts)
