"""The queue's workers, in place of django-q2's command of the same name.

The workers of django-q2 share locks. If one is killed while it holds a lock, all others wait
forever (docs/architecture.md, "The queue"). These workers share nothing.
"""

import gc
import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import Error, close_old_connections, connection, connections

from core.jobs import queue
from core.jobs.keeper import announce_job, must_end, pause, supervise_processes
from core.jobs.periodic import run_due_jobs
from core.jobs.services import record_job_success
from core.telemetry.tracing import open_span, trace_service
from dynabench.operations.soundness.health import check_schema
from evaluation.jobs import sweep_all
from evaluation.submissions.practice.serve import record_this_host

MESSAGES_PER_PROCESS = 20  # that a worker answers before a fresh one takes its place
POLL_SECONDS = 1.0
MIGRATION_POLL_SECONDS = 2.0
SWEEP_SECONDS = 30.0
MINUTE_SECONDS = 60.0
GRACE_SECONDS = 50.0  # for jobs to end; docs/operators.md gives the whole a minute
T = TypeVar("T")

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Run the jobs of the queue until Ctrl-C. Replaces workers that crash or hang."

    def handle(self, *args: Any, **options: Any) -> None:
        # A deployment may start workers before its migrations have ended.
        while not is_migrated():
            time.sleep(MIGRATION_POLL_SECONDS)
        connections.close_all()  # none is shared with the processes
        import_module("scipy.special")  # sooner or later each would load a copy of its own
        gc.freeze()  # collecting garbage would copy every page that the processes share
        worker_numbers = range(1, settings.Q_CLUSTER["workers"] + 1)
        practice_numbers = range(1, settings.PRACTICE_MODELS + 1)
        processes: dict[str, Callable[[], None]] = {
            f"worker {n}": answer_messages for n in worker_numbers
        }
        # Processes of their own, so that no long job keeps them waiting: an evaluation may last an
        # hour, while somebody looks at a page for the result of a job of seconds.
        processes["short"] = answer_short_messages
        processes["minutely"] = run_scheduled_jobs
        processes |= {f"practice {n}": serve_practice for n in practice_numbers}
        supervise_processes({"sweeper": sweep_often} | processes, GRACE_SECONDS)


def is_migrated() -> bool:
    """Return whether the database has the tables of this version.

    A new version's workers may start before its migrations have run.
    """
    schema = run_patiently(check_schema)
    if schema and schema.state != "ok":
        logger.warning("%s", schema.message)
    return schema is not None and schema.state == "ok"


def answer_short_messages() -> None:
    """Answer the messages for short jobs, also while long jobs occupy all workers."""
    answer_messages(partial(queue.take_message, queue.SHORT_QUEUE))


def serve_practice() -> None:
    """Answer the messages for practice models, and record that this machine serves them."""

    def take_practice_message() -> str | None:
        record_this_host()
        return queue.take_message(queue.PRACTICE_QUEUE)

    answer_messages(take_practice_message)


def answer_messages(take_message: Callable[[], str | None] = queue.take_message) -> None:
    """Answer messages one after another until a new process should replace this one.

    take_message: returns the next message of the queue, or None.
    """
    with trace_service("dynabench-queue") if settings.HAS_TRACES else nullcontext():
        for _ in range(MESSAGES_PER_PROCESS):
            # Nobody is told of new messages: each worker looks once a second.
            while (message := run_patiently(take_message)) is None:
                if not pause(POLL_SECONDS):
                    return
            announce_job()
            with open_span("answer message"):
                queue.run_message(message)
            if must_end():
                return


def sweep_often() -> None:
    """Call `sweep` at regular intervals, even if no message arrives."""
    while not must_end():
        announce_job()
        run_patiently(sweep)
        pause(SWEEP_SECONDS)


def sweep() -> None:
    """Release the leases of dead workers, and enqueue jobs that wait."""
    try:
        with record_job_success("sweep"):
            sweep_all()
    except Error:  # the database is away: `run_patiently` waits for it
        raise
    except Exception:  # such as of a container engine
        logger.exception("The rows cannot be swept")


def run_scheduled_jobs() -> None:
    """Run the scheduled jobs that are due, once a minute.

    Runs outside the workers, because evaluations may occupy all of them for an hour.
    """
    while not must_end():
        run_patiently(run_due_jobs)
        pause(MINUTE_SECONDS)


def run_patiently(query: Callable[[], T]) -> T | None:
    """Return the result of `query`, or None after a pause if the database does not answer."""
    # As Django does before each request: a connection may be too old, or broken.
    close_old_connections()
    try:
        return query()
    except Error as error:
        logger.warning("The database is awaited: %s", str(error).strip())
        connection.close()
        pause(5)
        return None
