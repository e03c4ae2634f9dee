"""The states of jobs, changed by conditional updates under a lease that can run out."""

import time
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.apps import apps
from django.db import InterfaceError, OperationalError, connection
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from core.files.places import without_places
from core.jobs.keeper import is_at_work
from core.jobs.queue import enqueue, is_empty
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, Job, Submission

LEASE_TIME = timedelta(minutes=2)
MAX_ATTEMPTS = 3
BEAT_SECONDS = 2.0  # between two heartbeats that are written
LATER = timedelta(minutes=1)  # until a job that cannot be done now is tried again
LONGEST_DELAY = timedelta(hours=1)  # between two tries while a server of others is away
GIVE_UP = timedelta(days=1)  # of being away
DATABASE_AWAY = (OperationalError, InterfaceError)
J = TypeVar("J", bound=Job)
State = Job.State


class LeaseLost(Exception):
    """The loss of a job to another worker or by its end; what this worker has found is dropped."""


class Overdue(Exception):
    """The end of a job's time."""


def kinds() -> Iterable[type[Job]]:
    """Return every kind of job."""
    return [model for model in apps.get_models() if issubclass(model, Job)]


def ready(kind: type[Job], at: datetime | None = None) -> Q:
    """Return the condition of rows that may be claimed now, or that can be at the time `at`."""
    on_time = Q(not_before=None) | Q(not_before__lte=at or timezone.now())
    return Q(state=State.QUEUED) & on_time & kind.may_begin()


def claim_job(
    kind: type[J], pk: int | uuid.UUID, *, by: datetime | None = None, **columns: Any
) -> J | None:
    """Claim a queued job for `LEASE_TIME`; None when it cannot be claimed. No lock.

    columns: set with it. by: a job that may begin until then counts as ready.
    """
    now, token = timezone.now(), uuid.uuid4()
    # Condition and change are one statement: of many workers, the database lets one through.
    won = kind._default_manager.filter(ready(kind, by), pk=pk).update(
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
    if not won:
        return None
    # By the token: a worker that stops here for longer than the lease must not read another's.
    return kind._default_manager.filter(pk=pk, lease_token=token).first()


READ = {"error", "log", "message"}


def _mine(job: Job, **changes: Any) -> None:
    """Change the row while the lease is this worker's; raise LeaseLost otherwise.

    Texts that people read never name a folder of this server.
    """
    cleaned = {
        name: without_places(changes[name]) for name in changes.keys() & READ if changes[name]
    }
    changes |= cleaned
    leased = type(job)._default_manager.filter(
        pk=job.pk, state=State.RUNNING, lease_token=job.lease_token
    )
    # No row: the lease ran out and the sweep took the job back, or somebody cancelled it.
    if not leased.update(**changes):
        raise LeaseLost(f"{job} is not this worker's any more.")
    for name, value in changes.items():
        setattr(job, name, value)


def heartbeat(job: Job, progress: float | None = None, message: str | None = None) -> None:
    """Renew the lease and store the progress (0-1). Raises LeaseLost."""
    news = {"progress": progress, "message": message and message[:200]}
    changes = {name: value for name, value in news.items() if value is not None}  # keep the rest
    _mine(job, lease_until=timezone.now() + LEASE_TIME, **changes)
    is_at_work()


class Heartbeat:
    """The heartbeat that keeps a claimed job's lease, even while the database is away.

    Then the work goes on for as long as the lease would have lasted.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._next = job, 0.0
        self._deadline: datetime | None = getattr(job, "deadline_at", None)

    def tell(self, progress: float, message: str) -> None:
        """Renew the lease with progress and message. Raises LeaseLost and Overdue.

        Call it often: it writes only every BEAT_SECONDS.
        """
        self._write(progress, message)

    def beat(self) -> None:
        """Keep the lease when there is no news. As `tell`."""
        self._write()

    def begin(self, progress: float, message: str) -> None:
        """Store the next step at once."""
        self._next = 0.0  # not only when the next beat is due
        self._write(progress, message)

    def _write(self, progress: float | None = None, message: str | None = None) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + BEAT_SECONDS
        if self._deadline and timezone.now() > self._deadline:
            raise Overdue
        try:
            heartbeat(self._job, progress, message)
        except DATABASE_AWAY:
            if self._has_lost():
                raise

    def patiently(self, write: Callable[[], None]) -> None:
        """Write, and retry while the database is away, until the lease would have ended."""
        while True:
            try:
                return write()
            except DATABASE_AWAY:
                if self._has_lost():
                    raise
                time.sleep(1)

    def _has_lost(self) -> bool:
        """Return whether the lease ran out while the database was away.

        Closes the connection, so that the next query connects again.
        """
        connection.close()  # a broken connection stays broken for all later queries
        return self._job.lease_until is None or timezone.now() > self._job.lease_until


def finish_job(job: Job, **results: Any) -> None:
    """End a job whose work is done; `results` are further columns of the row. Raises LeaseLost."""
    _mine(job, state=State.DONE, progress=1.0, message="", finished_at=timezone.now(), **results)


def fail(job: Job, error: str, **results: Any) -> None:
    """End a job that cannot be done; `error` says why and what to correct. Raises LeaseLost."""
    _mine(job, state=State.FAILED, error=error, finished_at=timezone.now(), **results)


def put_back(
    job: Job, not_before: datetime, message: str, *, counts: bool = False, **columns: Any
) -> None:
    """Queue a job again from `not_before` on; `message` says what it waits for.

    counts: whether it was one of MAX_ATTEMPTS. columns: set with it. Raises LeaseLost.
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
        **columns,
    )


def wait(job: Job, why: str) -> None:
    """Queue a job again for `LATER`, because it cannot be done now. Raises LeaseLost."""
    put_back(job, timezone.now() + LATER, why)


def try_again(job: Job, why: str) -> None:
    """Queue a job that the platform failed, MAX_ATTEMPTS times; then end it, free of charge.

    Raises LeaseLost.
    """
    if job.attempts < MAX_ATTEMPTS:
        put_back(job, timezone.now() + job.attempts * LATER, why, counts=True)
    else:
        fail(job, why, **_nobodys_fault(type(job)))


def wait_for_others(
    job: Submission | EvaluationRun, why: str, *, has_answered: bool = False
) -> None:
    """Queue a job again that another server failed; after GIVE_UP end it, free of charge.

    It waits as long as the server has been away: from a minute on twice as long each time, and an
    hour at most. has_answered: the server answered a part. Then it is asked again at most
    MAX_ATTEMPTS times, because its calls may cost money.
    Raises LeaseLost.
    """
    now = timezone.now()
    since = job.away_since or now
    is_costly = has_answered and job.attempts >= MAX_ATTEMPTS
    if now - since >= GIVE_UP or is_costly:
        fail(job, why, outcome=Outcome.AWAY)
    else:
        delay = min(max(now - since, LATER), LONGEST_DELAY)
        put_back(job, now + delay, why, counts=has_answered, away_since=since)


def _nobodys_fault(kind: type[Job]) -> dict[str, Outcome]:
    """Return the outcome of a job that the platform failed, if that kind has outcomes."""
    if not hasattr(kind, "outcome"):
        return {}
    return {"outcome": Outcome.INFRASTRUCTURE}


def cancel(job: Job, **results: Any) -> bool:
    """End a job that waits or runs; its worker's next heartbeat raises LeaseLost. No lock.

    Returns False if it was over already.
    """
    unfinished = type(job)._default_manager.filter(
        pk=job.pk, state__in=[State.QUEUED, State.RUNNING]
    )
    return _end(unfinished, State.CANCELLED, **results) == 1


def _end(jobs: QuerySet[Any], state: State, **results: Any) -> int:
    """End the jobs without their workers; return how many there were."""
    ended = {"lease_token": None, "message": "", "finished_at": timezone.now()}
    return jobs.update(state=state, **ended, **results)


def end_overdue(jobs: QuerySet[Any], **results: Any) -> int:
    """End running jobs whose time is over; their workers lose them. Return how many."""
    return _end(jobs.filter(state=State.RUNNING), State.FAILED, **results)


def sweep() -> int:
    """Queue jobs whose worker died again, and wake workers for all that wait.

    After MAX_ATTEMPTS a job is lost. While messages wait in the queue none is sent, so they
    never pile up; the next sweep sends them. Returns how many messages were sent.
    """
    messages_sent, now, is_quiet = 0, timezone.now(), is_empty()
    for kind in kinds():
        rows = kind._default_manager.all()
        # Two conditional updates, no lock: a worker that renews its lease at this moment either
        # comes first, and its row is not among the expired, or finds that it has lost the lease.
        expired = rows.filter(state=State.RUNNING, lease_until__lt=now)
        _end(
            expired.filter(attempts__gte=MAX_ATTEMPTS),
            State.LOST,
            error=f"The worker vanished {MAX_ATTEMPTS} times. Its log says why; then ask again.",
            **_nobodys_fault(kind),
        )
        expired.update(state=State.QUEUED, lease_token=None, lease_until=None, not_before=now)
        if not is_quiet:
            continue
        for pk in rows.filter(ready(kind)).values_list("pk", flat=True):
            enqueue(kind.function, pk)
            messages_sent += 1
    return messages_sent


def stuck(after: timedelta) -> list[str]:
    """Return in words the jobs that should be worked on and are not; empty when all is well.

    A job may wait for long while another one runs. It may not wait for longer than `after` while
    none runs, and no lease may have expired that long ago: then nobody sweeps.
    """
    long_ago, problems, is_busy = timezone.now() - after, [], False
    for kind in kinds():
        running = kind._default_manager.filter(state=State.RUNNING)
        is_busy = is_busy or running.filter(lease_until__gte=long_ago).exists()
        for job in running.filter(lease_until__lt=long_ago):
            problems.append(
                f"{job}: its worker vanished at {job.lease_until:%H:%M} and nobody sweeps"
            )
    if not is_busy:
        for kind in kinds():
            for job in kind._default_manager.filter(ready(kind, long_ago), queued_at__lt=long_ago):
                problems.append(f"{job}: waits since {job.queued_at:%H:%M} and no worker takes it")
    return problems
