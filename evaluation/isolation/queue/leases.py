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
from evaluation.models import Job
from evaluation.models.jobs import UNFINISHED

LEASE_TIME = timedelta(minutes=2)
MAX_ATTEMPTS = 3
BEAT_SECONDS = 2.0  # between two heartbeats that are written
RETRY_DELAY = timedelta(minutes=1)  # until a job that cannot be done now is tried again
LONGEST_DELAY = timedelta(hours=1)  # between two tries while a server of others is away
MAX_AWAY_TIME = timedelta(days=1)  # of being away
DATABASE_AWAY = (OperationalError, InterfaceError)
J = TypeVar("J", bound=Job)
State = Job.State


class LeaseLost(Exception):
    """Raised when a job was ended or has passed to another worker.

    This worker's results are dropped.
    """


class Overdue(Exception):
    """Raised when a job has passed its deadline."""


def job_models() -> Iterable[type[Job]]:
    """Return all models of jobs."""
    return [model for model in apps.get_models() if issubclass(model, Job)]


def claimable(kind: type[Job], at: datetime | None = None) -> Q:
    """Return the condition for jobs that may be claimed now, or at the time `at`."""
    on_time = Q(not_before=None) | Q(not_before__lte=at or timezone.now())
    return Q(state=State.QUEUED) & on_time & kind.may_begin()


def claim_job(
    kind: type[J], pk: int | uuid.UUID, *, by: datetime | None = None, **columns: Any
) -> J | None:
    """Claim a queued job for `LEASE_TIME`; None if it cannot be claimed. Takes no lock.

    columns: further columns to set. by: jobs that may begin by this time count as ready.
    """
    now, token = timezone.now(), uuid.uuid4()
    # Condition and change are one statement: of many workers, the database lets one through.
    claimed_count = kind._default_manager.filter(claimable(kind, by), pk=pk).update(
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
    if not claimed_count:
        return None
    # By the token: a worker that stops here for longer than the lease must not read another's.
    return kind._default_manager.filter(pk=pk, lease_token=token).first()


PUBLIC_TEXT_COLUMNS = {"error", "log", "message"}


def _change_own_job(job: Job, **changes: Any) -> None:
    """Change the job's row if this worker still has the lease. Raises LeaseLost otherwise.

    Removes the server's folder names from texts that people read.
    """
    cleaned_texts = {
        name: without_places(changes[name])
        for name in changes.keys() & PUBLIC_TEXT_COLUMNS
        if changes[name]
    }
    changes |= cleaned_texts
    leased_rows = type(job)._default_manager.filter(
        pk=job.pk, state=State.RUNNING, lease_token=job.lease_token
    )
    # No row: the lease ran out and the sweep took the job back, or somebody cancelled it.
    if not leased_rows.update(**changes):
        raise LeaseLost(f"{job} is not this worker's any more.")
    for name, value in changes.items():
        setattr(job, name, value)


def heartbeat(job: Job, progress: float | None = None, message: str | None = None) -> None:
    """Renew the lease and store the progress (0-1). Raises LeaseLost."""
    news = {"progress": progress, "message": message and message[:200]}
    changes = {name: value for name, value in news.items() if value is not None}  # keep the rest
    _change_own_job(job, lease_until=timezone.now() + LEASE_TIME, **changes)
    is_at_work()


class Heartbeat:
    """A heartbeat that keeps a claimed job's lease.

    While the database is away, the work continues for as long as the lease would have lasted.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._next = job, 0.0
        self._deadline: datetime | None = getattr(job, "deadline_at", None)

    def tell(self, progress: float | None, message: str | None) -> None:
        """Renew the lease and store progress and message. Raises LeaseLost and Overdue.

        May be called often: it writes only every BEAT_SECONDS.
        """
        self._write(progress, message)

    def beat(self) -> None:
        """Renew the lease without new progress; otherwise as `tell`."""
        self._write()

    def begin(self, progress: float, message: str) -> None:
        """Store the next step immediately, without waiting for BEAT_SECONDS."""
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
        """Call `write`, and retry while the database is away, until the lease would have ended."""
        while True:
            try:
                return write()
            except DATABASE_AWAY:
                if self._has_lost():
                    raise
                time.sleep(1)

    def _has_lost(self) -> bool:
        """Return whether the lease has ended while the database was away.

        Closes the connection, so that the next query opens a new one.
        """
        connection.close()  # a broken connection stays broken for all later queries
        return self._job.lease_until is None or timezone.now() > self._job.lease_until


def finish_job(job: Job, **results: Any) -> None:
    """Mark a job as done. Raises LeaseLost. results: further columns to set."""
    _change_own_job(
        job, state=State.DONE, progress=1.0, message="", finished_at=timezone.now(), **results
    )


def fail(job: Job, error: str, **results: Any) -> None:
    """Mark a job as failed. Raises LeaseLost.

    error: the reason and how to correct it. results: further columns to set.
    """
    _change_own_job(job, state=State.FAILED, error=error, finished_at=timezone.now(), **results)


def put_back(
    job: Job, not_before: datetime, message: str, *, is_counted: bool = False, **columns: Any
) -> None:
    """Return a job to the queue until `not_before`. Raises LeaseLost.

    message: what it waits for. is_counted: whether this attempt counts towards MAX_ATTEMPTS.
    columns: further columns to set.
    """
    _change_own_job(
        job,
        state=State.QUEUED,
        attempts=job.attempts - (not is_counted),
        lease_token=None,
        lease_until=None,
        not_before=not_before,
        progress=0.0,
        message=message[:200],
        **columns,
    )


def store_part(job: Job, **columns: Any) -> None:
    """Store a part of a job's results while it works. Raises LeaseLost."""
    _change_own_job(job, **columns)


def wait(job: Job, reason: str, seconds: float | None = None) -> None:
    """Return a job that cannot be done now to the queue for `seconds`, or for `RETRY_DELAY`.

    Raises LeaseLost.
    """
    delay = RETRY_DELAY
    if seconds is not None:
        delay = timedelta(seconds=max(1.0, seconds))
    put_back(job, timezone.now() + delay, reason)


def try_again(job: Job, reason: str) -> None:
    """Return a job to the queue after a failure of the platform. Raises LeaseLost.

    After MAX_ATTEMPTS the job fails, without counting against a quota.
    """
    if job.attempts < MAX_ATTEMPTS:
        put_back(job, timezone.now() + job.attempts * RETRY_DELAY, reason, is_counted=True)
    else:
        fail(job, reason, **_outcome_column(type(job), Outcome.INFRASTRUCTURE))


def wait_for_others(job: Job, reason: str, *, has_answered: bool = False) -> None:
    """Return a job to the queue because another server failed. Raises LeaseLost.

    The job waits one minute at first, then as long as the server has been away, but at most an
    hour. After MAX_AWAY_TIME it fails, without counting against a quota. has_answered: whether the
    server answered some examples. Then it is retried at most MAX_ATTEMPTS times, because calls may
    cost money.
    """
    now = timezone.now()
    since = job.away_since or now
    is_costly = has_answered and job.attempts >= MAX_ATTEMPTS
    if now - since >= MAX_AWAY_TIME or is_costly:
        fail(job, reason, **_outcome_column(type(job), Outcome.AWAY))
    else:
        delay = min(max(now - since, RETRY_DELAY), LONGEST_DELAY)
        put_back(job, now + delay, reason, is_counted=has_answered, away_since=since)


def _outcome_column(kind: type[Job], outcome: Outcome) -> dict[str, Outcome]:
    """Return the column for an outcome; empty if the job has no outcome."""
    if not hasattr(kind, "outcome"):
        return {}
    return {"outcome": outcome}


def queue_again(jobs: QuerySet[Any], **columns: Any) -> int:
    """Queue jobs again that have ended, as if they had just been requested; return how many.

    columns: further columns to set. Results of an earlier request stay, such as verdicts and
    reports. Takes no lock: of two simultaneous requests only one finds the job ended. Messages are
    sent when the current transaction commits.
    """
    count = 0
    for pk in jobs.exclude(state__in=UNFINISHED).values_list("pk", flat=True):
        # The condition again, in the statement that changes the row: another request may be first.
        ended_jobs = jobs.filter(pk=pk).exclude(state__in=UNFINISHED)
        queued_count = ended_jobs.update(
            state=State.QUEUED,
            attempts=0,
            # Waiting times, and for how long servers may be away, count from this request.
            queued_at=timezone.now(),
            not_before=None,
            away_since=None,
            progress=0.0,
            message="",
            error="",
            **columns,
        )
        if queued_count:
            enqueue(jobs.model.function, pk)
            count += queued_count
    return count


def cancel(job: Job, **results: Any) -> bool:
    """Cancel a queued or running job; its worker's next heartbeat raises LeaseLost.

    Returns False if the job had already ended. Takes no lock.
    """
    unfinished = type(job)._default_manager.filter(pk=job.pk, state__in=UNFINISHED)
    return _end(unfinished, State.CANCELLED, **results) == 1


def _end(jobs: QuerySet[Any], state: State, **results: Any) -> int:
    """End the jobs without their workers' involvement; return how many."""
    ended = {"lease_token": None, "message": "", "finished_at": timezone.now()}
    return jobs.update(state=state, **ended, **results)


def end_overdue(jobs: QuerySet[Any], **results: Any) -> int:
    """End running jobs whose time is over; return how many. Their workers lose them."""
    return _end(jobs.filter(state=State.RUNNING), State.FAILED, **results)


def sweep() -> int:
    """Requeue jobs whose worker died, and wake workers for all queued jobs.

    After MAX_ATTEMPTS a job is lost. Messages are sent only while the queue holds none, so that
    they never pile up. Returns the number of messages sent.
    """
    messages_sent, now, is_quiet = 0, timezone.now(), is_empty()
    for kind in job_models():
        rows = kind._default_manager.all()
        # Two conditional updates, no lock: a worker that renews its lease at this moment either
        # comes first, and its row is not among the expired, or finds that it has lost the lease.
        expired_jobs = rows.filter(state=State.RUNNING, lease_until__lt=now)
        _end(
            expired_jobs.filter(attempts__gte=MAX_ATTEMPTS),
            State.LOST,
            error=f"The worker vanished {MAX_ATTEMPTS} times. Its log says why; then ask again.",
            **_outcome_column(kind, Outcome.INFRASTRUCTURE),
        )
        expired_jobs.update(state=State.QUEUED, lease_token=None, lease_until=None, not_before=now)
        if not is_quiet:
            continue
        for pk in rows.filter(claimable(kind)).values_list("pk", flat=True):
            enqueue(kind.function, pk)
            messages_sent += 1
    return messages_sent


def find_stuck_jobs(max_wait: timedelta) -> list[str]:
    """Return a sentence for each job that should be worked on but is not; empty if all is well.

    A job may wait while other jobs run. It is stuck if it has waited longer than `max_wait` while
    none runs, or if its lease expired that long ago, because then nothing sweeps.
    """
    long_ago, problems, is_busy = timezone.now() - max_wait, [], False
    for kind in job_models():
        running = kind._default_manager.filter(state=State.RUNNING)
        is_busy = is_busy or running.filter(lease_until__gte=long_ago).exists()
        for job in running.filter(lease_until__lt=long_ago):
            problems.append(
                f"{job}: its worker vanished at {job.lease_until:%H:%M} and nobody sweeps"
            )
    if not is_busy:
        for kind in job_models():
            for job in kind._default_manager.filter(
                claimable(kind, long_ago), queued_at__lt=long_ago
            ):
                problems.append(f"{job}: waits since {job.queued_at:%H:%M} and no worker takes it")
    return problems
