"""How jobs move from state to state: by conditional updates, under a lease that can run out."""

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.apps import apps
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from dynabench.lib.keeper import is_at_work
from dynabench.lib.places import without_places
from dynabench.lib.queue import enqueue, is_empty
from evaluation.contract import Outcome
from evaluation.models import Job

LEASE_TIME = timedelta(minutes=2)
MAX_ATTEMPTS = 3
J = TypeVar("J", bound=Job)
State = Job.State


class LeaseLost(Exception):
    """Somebody else has the job, or it was ended; what this worker found counts for nothing."""


def kinds() -> Iterable[type[Job]]:
    """Every kind of job that there is."""
    return [model for model in apps.get_models() if issubclass(model, Job)]


def ready(kind: type[Job], since: datetime | None = None) -> Q:
    """Which rows may be claimed now; since: those that could have been at that time already."""
    on_time = Q(not_before=None) | Q(not_before__lte=since or timezone.now())
    return Q(state=State.QUEUED) & on_time & kind.may_begin()


def claim(kind: type[J], pk: int | uuid.UUID, **columns: Any) -> J | None:
    """Take a queued job for `LEASE_TIME`; None when there is nothing to take. No lock.

    `columns` are set with it.
    """
    now, token = timezone.now(), uuid.uuid4()
    won = kind._default_manager.filter(ready(kind), pk=pk).update(
        state=State.RUNNING,
        attempts=F("attempts") + 1,
        lease_token=token,
        lease_until=now + LEASE_TIME,
        started_at=now,
        progress=0,
        message="",
        error="",
        **columns,
    )
    # By the token: whoever is stopped here for longer than the lease must not read another's.
    return kind._default_manager.filter(pk=pk, lease_token=token).first() if won else None


READ = {"error", "log", "message"}


def _mine(job: Job, **changes: Any) -> None:
    """Change the row while the lease is this worker's; raises LeaseLost.

    What people read of it names no folder of this server.
    """
    told = {name: without_places(changes[name]) for name in changes.keys() & READ if changes[name]}
    changes |= told
    mine = type(job)._default_manager.filter(
        pk=job.pk, state=State.RUNNING, lease_token=job.lease_token
    )
    if not mine.update(**changes):
        raise LeaseLost(f"{job} is not this worker's any more.")
    for name, value in changes.items():
        setattr(job, name, value)


def heartbeat(job: Job, progress: float | None = None, message: str | None = None) -> None:
    """Keep the lease and tell how far the work is (0-1). Raises LeaseLost."""
    told = {"progress": progress, "message": message and message[:200]}
    changes = {name: value for name, value in told.items() if value is not None}
    _mine(job, lease_until=timezone.now() + LEASE_TIME, **changes)
    is_at_work()


def finish(job: Job, **results: Any) -> None:
    """The work is done; `results` are further columns of the row. Raises LeaseLost."""
    _mine(job, state=State.DONE, progress=1.0, message="", finished_at=timezone.now(), **results)


def fail(job: Job, error: str, **results: Any) -> None:
    """The work cannot be done; `error` says why and what to mend. Raises LeaseLost."""
    _mine(job, state=State.FAILED, error=error, finished_at=timezone.now(), **results)


def put_back(job: Job, not_before: datetime, message: str, *, counts: bool = False) -> None:
    """Queue it again, from `not_before` on; `message` tells what it waits for. Raises LeaseLost.

    counts: whether it was one of MAX_ATTEMPTS.
    """
    _mine(
        job,
        state=State.QUEUED,
        attempts=job.attempts - (not counts),
        lease_token=None,
        lease_until=None,
        not_before=not_before,
        progress=0.0,
        message=message[:200],
    )


def cancel(job: Job, **results: Any) -> bool:
    """End a job that waits or runs; its worker's next heartbeat raises LeaseLost. No lock.

    False: it was over already.
    """
    unfinished = type(job)._default_manager.filter(
        pk=job.pk, state__in=[State.QUEUED, State.RUNNING]
    )
    return _end(unfinished, State.CANCELLED, **results) == 1


def _end(jobs: QuerySet[Any], state: State, **results: Any) -> int:
    """End the jobs without their workers; how many there were."""
    ended = {"lease_token": None, "message": "", "finished_at": timezone.now()}
    return jobs.update(state=state, **ended, **results)


def end_overdue(jobs: QuerySet[Any], **results: Any) -> int:
    """End jobs that run though their time is over; their workers lose them."""
    return _end(jobs.filter(state=State.RUNNING), State.FAILED, **results)


def sweep(functions: dict[type[Job], str]) -> int:
    """Put jobs whose worker died back into the queue, and ring for all that wait.

    `functions` names what does each kind. After MAX_ATTEMPTS a job is lost. While messages wait
    in the queue nothing is rung, so they never pile up; the next sweep rings. Returns how many
    messages were sent.
    """
    rung, now, quiet = 0, timezone.now(), is_empty()
    for kind, function in functions.items():
        rows = kind._default_manager.all()
        expired = rows.filter(state=State.RUNNING, lease_until__lt=now)
        unseen = {"outcome": Outcome.INFRASTRUCTURE} if hasattr(kind, "outcome") else {}
        _end(
            expired.filter(attempts__gte=MAX_ATTEMPTS),
            State.LOST,
            error=f"The worker vanished {MAX_ATTEMPTS} times. Its log says why; then ask again.",
            **unseen,
        )
        expired.update(state=State.QUEUED, lease_token=None, lease_until=None, not_before=now)
        for pk in rows.filter(ready(kind)).values_list("pk", flat=True) if quiet else ():
            enqueue(function, pk)
            rung += 1
    return rung


def stuck(after: timedelta) -> list[str]:
    """What nobody works on though it should be, in words; empty when all is well.

    A job may wait for long while another one runs. It may not wait for longer than `after` while
    none runs, and no lease may have expired that long ago: then nobody sweeps.
    """
    long_ago, found, busy = timezone.now() - after, [], False
    for kind in kinds():
        running = kind._default_manager.filter(state=State.RUNNING)
        busy = busy or running.filter(lease_until__gte=long_ago).exists()
        for job in running.filter(lease_until__lt=long_ago):
            found.append(f"{job}: its worker vanished at {job.lease_until:%H:%M} and nobody sweeps")
    if not busy:
        for kind in kinds():
            for job in kind._default_manager.filter(ready(kind, long_ago), queued_at__lt=long_ago):
                found.append(f"{job}: waits since {job.queued_at:%H:%M} and no worker takes it")
    return found
