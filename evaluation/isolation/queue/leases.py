"""The states of jobs, changed by conditional updates under a lease that expires."""

import time
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.apps import apps
from django.db import InterfaceError, OperationalError, connection
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from core.files.paths import remove_paths
from core.jobs.keeper import announce_job
from core.jobs.queue import enqueue, is_queue_empty
from evaluation.contract import Outcome
from evaluation.models import Job
from evaluation.models.jobs import UNFINISHED_STATES

LEASE_TIME = timedelta(minutes=2)
MAX_ATTEMPTS = 3
BEAT_SECONDS = 2.0  # between two stored heartbeats
RETRY_DELAY = timedelta(minutes=1)  # until a job that cannot run now is tried again
MAX_DELAY = timedelta(hours=1)  # between two attempts while a third party's server is down
MAX_AWAY_TIME = timedelta(days=1)  # for which such a server may be down
DATABASE_AWAY_ERRORS = (OperationalError, InterfaceError)
J = TypeVar("J", bound=Job)
State = Job.State


class LeaseLost(Exception):
    """Raised when a job was ended or has passed to another worker.

    This worker's results are dropped.
    """


class JobOverdue(Exception):
    """Raised when a job has passed its deadline."""


def list_job_models() -> Iterable[type[Job]]:
    """Return all models of jobs."""
    return [model for model in apps.get_models() if issubclass(model, Job)]


def build_claimable_condition(job_model: type[Job], now: datetime | None = None) -> Q:
    """Return the condition for jobs that may be claimed now, or at the time `now`."""
    is_due = Q(not_before=None) | Q(not_before__lte=now or timezone.now())
    return Q(state=State.QUEUED) & is_due & job_model.build_ready_condition()


def claim_job(
    job_model: type[J], pk: int | uuid.UUID, *, begin_by: datetime | None = None, **columns: Any
) -> J | None:
    """Claim a queued job for `LEASE_TIME` and return it; None if it cannot be claimed.

    columns: further columns to set. begin_by: jobs that may begin by this time count as ready.
    Takes no lock.
    """
    now, token = timezone.now(), uuid.uuid4()
    # Condition and change are one statement, so only one of many workers succeeds.
    claimed_count = job_model._default_manager.filter(
        build_claimable_condition(job_model, begin_by), pk=pk
    ).update(
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
    # By the token: a worker that pauses longer than its lease must not read another's.
    return job_model._default_manager.filter(pk=pk, lease_token=token).first()


PUBLIC_TEXT_COLUMNS = {"error", "log", "message"}


def _change_own_job(job: Job, **changes: Any) -> None:
    """Change the job's row if this worker still has the lease. Raises LeaseLost otherwise.

    Removes the server's folder names from texts that people read.
    """
    cleaned_texts = {
        name: remove_paths(changes[name])
        for name in changes.keys() & PUBLIC_TEXT_COLUMNS
        if changes[name]
    }
    changes |= cleaned_texts
    leased_rows = type(job)._default_manager.filter(
        pk=job.pk, state=State.RUNNING, lease_token=job.lease_token
    )
    # No row: the lease expired and the sweep requeued the job, or it was cancelled.
    if not leased_rows.update(**changes):
        raise LeaseLost(f"{job} is not this worker's any more.")
    for name, value in changes.items():
        setattr(job, name, value)


def write_heartbeat(job: Job, progress: float | None = None, message: str | None = None) -> None:
    """Renew the lease and store the progress (0-1). Raises LeaseLost.

    A progress or message of None keeps the stored one.
    """
    new_values = {"progress": progress, "message": message and message[:200]}
    changes = {
        name: value for name, value in new_values.items() if value is not None
    }  # keep the other values
    _change_own_job(job, lease_until=timezone.now() + LEASE_TIME, **changes)
    announce_job()


class Heartbeat:
    """A heartbeat that keeps a claimed job's lease.

    While the database is away, the work continues for as long as the lease would have lasted.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._next_beat_at = job, 0.0
        self._deadline: datetime | None = getattr(job, "deadline_at", None)

    def report_progress(self, progress: float | None, message: str | None) -> None:
        """Renew the lease and store progress and message. Raises LeaseLost and JobOverdue.

        May be called often: it writes only every BEAT_SECONDS.
        """
        self._write(progress, message)

    def beat(self) -> None:
        """Renew the lease without new progress. Raises LeaseLost and JobOverdue."""
        self._write()

    def begin_step(self, progress: float, message: str) -> None:
        """Store the next step immediately, without waiting for BEAT_SECONDS.

        Raises LeaseLost and JobOverdue.
        """
        self._next_beat_at = 0.0  # immediately, not only when the next beat is due
        self._write(progress, message)

    def _write(self, progress: float | None = None, message: str | None = None) -> None:
        if time.monotonic() < self._next_beat_at:
            return
        self._next_beat_at = time.monotonic() + BEAT_SECONDS
        if self._deadline and timezone.now() > self._deadline:
            raise JobOverdue
        try:
            write_heartbeat(self._job, progress, message)
        except DATABASE_AWAY_ERRORS:
            # Until the lease ends, nobody else can take the job, so the work continues.
            if self._has_lost_lease():
                raise

    def call_patiently(self, write: Callable[[], None]) -> None:
        """Call `write`, and retry while the database is away, until the lease would have ended.

        Then the database's error is raised.
        """
        while True:
            try:
                return write()
            except DATABASE_AWAY_ERRORS:
                if self._has_lost_lease():
                    raise
                time.sleep(1)

    def _has_lost_lease(self) -> bool:
        """Return whether the lease has ended while the database was away.

        Closes the connection, so that the next query opens a new one.
        """
        connection.close()  # a broken connection would fail for all later queries
        return self._job.lease_until is None or timezone.now() > self._job.lease_until


def finish_job(job: Job, **results: Any) -> None:
    """Mark a job as done. Raises LeaseLost. results: further columns to set."""
    _change_own_job(
        job, state=State.DONE, progress=1.0, message="", finished_at=timezone.now(), **results
    )


def fail_job(job: Job, error: str, **results: Any) -> None:
    """Mark a job as failed. Raises LeaseLost.

    error: the reason and how to correct it. results: further columns to set.
    """
    _change_own_job(job, state=State.FAILED, error=error, finished_at=timezone.now(), **results)


def return_to_queue(
    job: Job, not_before: datetime, message: str, *, is_counted: bool = False, **columns: Any
) -> None:
    """Return a job to the queue until `not_before`. Raises LeaseLost.

    message: what it waits for. is_counted: whether this attempt counts towards MAX_ATTEMPTS.
    columns: further columns to set.
    """
    _change_own_job(
        job,
        state=State.QUEUED,
        # Claiming the job has already counted this attempt.
        attempts=job.attempts - (not is_counted),
        lease_token=None,
        lease_until=None,
        not_before=not_before,
        progress=0.0,
        message=message[:200],
        **columns,
    )


def store_partial_results(job: Job, **columns: Any) -> None:
    """Store a part of a job's results while the job is running. Raises LeaseLost."""
    _change_own_job(job, **columns)


def postpone_job(job: Job, reason: str, seconds: float | None = None) -> None:
    """Return a job that cannot be done now to the queue for `seconds`, or for `RETRY_DELAY`.

    Raises LeaseLost.
    """
    delay = RETRY_DELAY
    if seconds is not None:
        delay = timedelta(seconds=max(1.0, seconds))
    return_to_queue(job, timezone.now() + delay, reason)


def retry_job(job: Job, reason: str) -> None:
    """Return a job to the queue after a failure of the platform. Raises LeaseLost.

    After MAX_ATTEMPTS the job fails, without counting against a quota.
    """
    if job.attempts < MAX_ATTEMPTS:
        return_to_queue(job, timezone.now() + job.attempts * RETRY_DELAY, reason, is_counted=True)
    else:
        fail_job(job, reason, **_build_outcome_column(type(job), Outcome.INFRASTRUCTURE))


def wait_for_server(job: Job, reason: str, *, has_answered: bool = False) -> None:
    """Return a job to the queue because another server failed. Raises LeaseLost.

    The job waits one minute at first. Later it waits as long as the server has been away, but at
    most an hour. After MAX_AWAY_TIME it fails, without counting against a quota. has_answered:
    whether the server answered some examples. If so, it is retried at most MAX_ATTEMPTS times,
    because calls may cost money.
    """
    now = timezone.now()
    away_since = job.away_since or now
    is_costly = has_answered and job.attempts >= MAX_ATTEMPTS
    if now - away_since >= MAX_AWAY_TIME or is_costly:
        fail_job(job, reason, **_build_outcome_column(type(job), Outcome.AWAY))
    else:
        delay = min(max(now - away_since, RETRY_DELAY), MAX_DELAY)
        return_to_queue(job, now + delay, reason, is_counted=has_answered, away_since=away_since)


def _build_outcome_column(job_model: type[Job], outcome: Outcome) -> dict[str, Outcome]:
    """Return the column for an outcome; empty if the job has no outcome."""
    if not hasattr(job_model, "outcome"):
        return {}
    return {"outcome": outcome}


def requeue_jobs(jobs: QuerySet[Any], **columns: Any) -> int:
    """Queue jobs again that have ended, as if they had just been requested; return how many.

    columns: further columns to set. Results of an earlier request stay, such as verdicts and
    reports. Takes no lock: of two simultaneous requests only one finds the job ended. Messages are
    sent when the current transaction commits.
    """
    count = 0
    for pk in jobs.exclude(state__in=UNFINISHED_STATES).values_list("pk", flat=True):
        # The condition is checked again in the update, because another request may be first.
        ended_jobs = jobs.filter(pk=pk).exclude(state__in=UNFINISHED_STATES)
        queued_count = ended_jobs.update(
            state=State.QUEUED,
            attempts=0,
            # Waiting times, and the time that servers may be down, start at this request.
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


def cancel_job(job: Job, **results: Any) -> bool:
    """Cancel a queued or running job; its worker's next heartbeat raises LeaseLost.

    Returns False if the job had already ended. Takes no lock.
    """
    unfinished_jobs = type(job)._default_manager.filter(pk=job.pk, state__in=UNFINISHED_STATES)
    return _end_jobs(unfinished_jobs, State.CANCELLED, **results) == 1


def _end_jobs(jobs: QuerySet[Any], state: State, **results: Any) -> int:
    """End the jobs without their workers' involvement; return how many."""
    end_columns = {"lease_token": None, "message": "", "finished_at": timezone.now()}
    return jobs.update(state=state, **end_columns, **results)


def end_overdue_jobs(jobs: QuerySet[Any], **results: Any) -> int:
    """Mark the given overdue jobs as failed if they are still running; return how many.

    Their workers lose their leases. results: further columns to set.
    """
    return _end_jobs(jobs.filter(state=State.RUNNING), State.FAILED, **results)


def sweep_jobs() -> int:
    """Requeue jobs whose worker died, and wake workers for all queued jobs.

    After MAX_ATTEMPTS a job is lost. Messages are sent only while the queue holds none, so that
    they never pile up. Returns the number of messages sent.
    """
    message_count, now, is_quiet = 0, timezone.now(), is_queue_empty()
    for job_model in list_job_models():
        rows = job_model._default_manager.all()
        # Two conditional updates without a lock: a worker that renews its lease now is either
        # first, so that its row has not expired, or finds that it has lost the lease.
        expired_jobs = rows.filter(state=State.RUNNING, lease_until__lt=now)
        _end_jobs(
            expired_jobs.filter(attempts__gte=MAX_ATTEMPTS),
            State.LOST,
            error=f"The worker vanished {MAX_ATTEMPTS} times. Its log says why; then ask again.",
            **_build_outcome_column(job_model, Outcome.INFRASTRUCTURE),
        )
        expired_jobs.update(state=State.QUEUED, lease_token=None, lease_until=None, not_before=now)
        if not is_quiet:
            continue
        for pk in rows.filter(build_claimable_condition(job_model)).values_list("pk", flat=True):
            enqueue(job_model.function, pk)
            message_count += 1
    return message_count


def find_stuck_jobs(max_wait: timedelta) -> list[str]:
    """Return a sentence for each job that should be worked on but is not; empty if all is well.

    A job may wait while other jobs run. It is stuck if it has waited longer than `max_wait` while
    none runs. It is also stuck if its lease expired that long ago, because then nothing sweeps.
    """
    oldest_time, problems, is_busy = timezone.now() - max_wait, [], False
    for job_model in list_job_models():
        running_jobs = job_model._default_manager.filter(state=State.RUNNING)
        is_busy = is_busy or running_jobs.filter(lease_until__gte=oldest_time).exists()
        for job in running_jobs.filter(lease_until__lt=oldest_time):
            problems.append(
                f"{job}: its worker vanished at {job.lease_until:%H:%M} and nobody sweeps"
            )
    if not is_busy:
        for job_model in list_job_models():
            for job in job_model._default_manager.filter(
                build_claimable_condition(job_model, oldest_time), queued_at__lt=oldest_time
            ):
                problems.append(f"{job}: waits since {job.queued_at:%H:%M} and no worker takes it")
    return problems
