"""The lifecycle of every job: its next state when its work ends or fails.

docs/architecture.md draws the states. `leases` has the conditional updates that change them, and
the sweep that finds jobs whose worker died.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from core.errors import Unavailable
from evaluation.contract import AttemptFailed, ImpossibleJob, NotNow, ServerAway
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat, LeaseLost
from evaluation.models import Job
from serving.hub import HubUnavailableError

logger = logging.getLogger(__name__)
J = TypeVar("J", bound=Job)
WorkFunction = Callable[[J, Heartbeat], None]
"""A function that does a claimed job and ends it by `leases.finish_job`, or raises an error."""


def do_claimed_job(job: J | None, work: Callable[[J], None]) -> J | None:
    """Do a claimed job, if there is one, and return it.

    If the lease is lost, only a warning is logged: another worker has the job, or it was ended.
    """
    if job is not None:
        try:
            work(job)
        except LeaseLost as lost:
            logger.warning("%s", lost)
    return job


def do_job_work(job: J, work: WorkFunction[J]) -> None:
    """Do the work of a claimed job. If it raises an error, change the job's state accordingly.

    That change waits while the database is away, for as long as the lease would have lasted.
    Raises LeaseLost when another worker has the job, or it was ended.
    """
    heartbeat = Heartbeat(job)
    try:
        work(job, heartbeat)
    except LeaseLost:
        raise
    except Exception as error:
        heartbeat.call_patiently(partial(end_stopped_job, job, error))


def end_stopped_job(job: Job, error: Exception) -> None:
    """Queue a job again or fail it, depending on the error that stopped it. Raises LeaseLost.

    1. NotNow: the job waits, and the attempt does not count.
    2. ServerAway: the job waits longer each time, and fails after a day.
    3. ImpossibleJob: the job fails.
    4. Any other error: the job is tried again, and fails after MAX_ATTEMPTS. An unexpected error is
       logged, and the job's message names only its class.
    """
    match error:
        case NotNow() | Unavailable():
            seconds = getattr(error, "seconds", None)
            leases.postpone_job(job, str(error), seconds)
        case ServerAway():
            leases.wait_for_server(job, str(error), has_answered=error.has_answered)
        case HubUnavailableError():
            leases.wait_for_server(job, str(error))
        case ImpossibleJob():
            leases.fail_job(job, str(error), **error.columns)
        case AttemptFailed():
            leases.retry_job(job, str(error))
        case _:
            logger.error("%s", job, exc_info=error)
            message = f"The platform failed ({type(error).__name__}). The worker's log says more."
            leases.retry_job(job, message)
