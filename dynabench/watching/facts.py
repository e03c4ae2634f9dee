"""What the site does now: counted at most each minute, however often monitors and people ask."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.cache import cache
from django.db.models import Count, Min, Q
from django.utils import timezone

from dynabench.lib.adaptive_cache import kept
from dynabench.upkeep.models import LastSuccess
from evaluation.models import EvaluationRun, Job
from evaluation.queue.leases import kinds, ready
from tasks.models import Round, TargetModel
from tasks.targets.endpoints.live import open_breakers
from validation.judging.queue import JUDGED_STATES
from validation.models import QueueItem

RECENT = timedelta(hours=1)


@dataclass(frozen=True)
class JobFacts:
    """Jobs of one kind. oldest_at: since when the one that waits longest does."""

    waiting: int
    running: int
    oldest_at: datetime | None


@dataclass(frozen=True)
class Facts:
    """What monitors and the status page tell.

    jobs: by kind. ended: evaluations of the last hour, by outcome. to_judge: examples, by task.
    targets: names of those of open rounds, by primary key. successes: of the clock's jobs.
    """

    jobs: Mapping[str, JobFacts]
    ended: Mapping[str, int]
    to_judge: Mapping[str, int]
    targets: Mapping[int, str]
    successes: Mapping[str, datetime]


def facts() -> Facts:
    """As counted now or a little ago, in as many queries as there are kinds of jobs and four."""
    return kept("site-facts", _count)


def left_alone(found: Facts) -> set[str]:
    """The names of targets that failed too often and are not asked for a while."""
    open_ones = open_breakers(cache, [str(pk) for pk in found.targets])
    return {name for pk, name in found.targets.items() if str(pk) in open_ones}


def _count() -> Facts:
    recent = EvaluationRun.objects.filter(finished_at__gte=timezone.now() - RECENT)
    to_judge = QueueItem.objects.filter(round__state__in=JUDGED_STATES, still_needed__gt=0)
    targets = TargetModel.objects.filter(rounds__state=Round.State.OPEN)
    return Facts(
        jobs={kind._meta.model_name or "": _jobs(kind) for kind in kinds()},
        ended=dict(recent.order_by().values_list("outcome").annotate(Count("pk"))),
        to_judge=dict(to_judge.values_list("round__task__code").annotate(Count("pk"))),
        targets=dict(targets.values_list("pk", "name")),
        successes=dict(LastSuccess.objects.values_list("job", "succeeded_at")),
    )


def _jobs(kind: type[Job]) -> JobFacts:
    waiting, state = ready(kind), Job.State
    unfinished = kind._default_manager.filter(state__in=[state.QUEUED, state.RUNNING])
    found = unfinished.aggregate(
        waiting=Count("pk", filter=waiting),
        running=Count("pk", filter=Q(state=state.RUNNING)),
        oldest_at=Min("queued_at", filter=waiting),
    )
    return JobFacts(**found)
