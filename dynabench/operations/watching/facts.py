"""The current state of the site's work, counted at most once a minute for monitors and people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.core.cache import cache
from django.db.models import Count, Min, Q
from django.utils import timezone

from core.data.adaptive_cache import read_or_count
from core.jobs.models import Incident, LastSuccess
from core.versions import get_version
from dynabench.operations.soundness.health import check_model_server
from evaluation.isolation.queue.leases import build_claimable_condition, list_job_models
from evaluation.models import EvaluationRun, Job
from tasks.models import Round, TargetModel
from tasks.targets.circuit_breaker.breaker import find_open_breakers
from validation.decisions.awaited import JUDGED_ROUND_STATES
from validation.models import QueueItem

RECENT_PERIOD = timedelta(hours=1)
MAX_INCIDENTS = 10
CACHE_KEY = f"site-facts-{get_version()}"
"""The cache key. It contains the version, because another version's facts may have another form."""


@dataclass(frozen=True)
class JobFacts:
    """The numbers of jobs of one kind.

    oldest_at: when the job that has waited longest was queued.
    """

    waiting: int
    running: int
    oldest_at: datetime | None


class TargetFacts(NamedTuple):
    """A target of an open round.

    code, task: its task's code and name. is_public: whether the task is public. url: "" if the
    site's model server runs the target.
    """

    pk: int
    name: str
    code: str
    task: str
    is_public: bool
    url: str


@dataclass(frozen=True)
class Facts:
    """The figures for the monitoring endpoint and the status page.

    jobs: the numbers of jobs by kind. ended: the number of evaluations that ended in the past hour,
    by outcome. to_judge: the number of examples that need votes, by task. targets: the targets of
    open rounds. successes: when each scheduled job last succeeded. incidents: the latest ones,
    newest first.
    is_server_away: whether the site's model server is down.
    """

    counted_at: datetime

    jobs: Mapping[str, JobFacts]
    ended: Mapping[str, int]
    to_judge: Mapping[str, int]
    targets: Sequence[TargetFacts]
    successes: Mapping[str, datetime]
    incidents: Sequence[Incident]
    is_server_away: bool


def count_facts() -> Facts:
    """Return the facts, from the cache if they were counted within a minute.

    Counting takes one query per kind of job, and four more.
    """
    # Kept for a minute in the cache, for all processes.
    return read_or_count(CACHE_KEY, _count_facts)


def read_last_facts() -> Facts | None:
    """Return the latest facts in the cache, up to a day old; None if there are none.

    They are for the time when the database is down.
    """
    entry = cache.get(CACHE_KEY)
    if not entry:
        return None
    last_facts: Facts = entry.numbers
    return last_facts


def find_paused_targets(facts: Facts) -> set[int]:
    """Return the ids of targets that failed too often and are not called for a while."""
    return set(map(int, find_open_breakers(cache, [str(target.pk) for target in facts.targets])))


def _count_facts() -> Facts:
    # By outcome: a monitor warns when the platform fails many.
    recent_runs = EvaluationRun.objects.filter(finished_at__gte=timezone.now() - RECENT_PERIOD)
    waiting_items = QueueItem.objects.filter(
        round__state__in=JUDGED_ROUND_STATES, still_needed__gt=0
    )
    targets = TargetModel.objects.filter(rounds__state=Round.State.OPEN).distinct()
    target_columns = targets.values_list(
        "pk", "name", "task__code", "task__name", "task__is_visible", "url"
    )
    return Facts(
        counted_at=timezone.now(),
        jobs={kind._meta.model_name or "": _count_jobs(kind) for kind in list_job_models()},
        ended=dict(recent_runs.order_by().values_list("outcome").annotate(Count("pk"))),
        to_judge=dict(waiting_items.values_list("round__task__code").annotate(Count("pk"))),
        targets=[TargetFacts(*row) for row in target_columns.order_by("task__name", "name")],
        successes=dict(LastSuccess.objects.values_list("job", "succeeded_at")),
        incidents=list(Incident.objects.all()[:MAX_INCIDENTS]),
        is_server_away=check_model_server().state == "bad",
    )


def _count_jobs(kind: type[Job]) -> JobFacts:
    is_waiting, state = build_claimable_condition(kind), Job.State
    unfinished_jobs = kind._default_manager.filter(state__in=[state.QUEUED, state.RUNNING])
    counts = unfinished_jobs.aggregate(
        waiting=Count("pk", filter=is_waiting),
        running=Count("pk", filter=Q(state=state.RUNNING)),
        oldest_at=Min("queued_at", filter=is_waiting),
    )
    return JobFacts(**counts)
