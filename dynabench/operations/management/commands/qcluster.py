"""The queue's workers, in the place of django-q2's command of the same name.

Its workers share locks, and one that is killed takes them with it: then all others wait forever
(docs/architecture.md, "The queue"). Ours share nothing.
"""

import gc
import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any, TypeVar

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import Error, close_old_connections, connection, connections

from core.jobs import queue
from core.jobs.keeper import is_at_work, keep, must_end, pause
from core.jobs.periodic import do_what_is_due
from core.jobs.services import noted
from core.telemetry.tracing import span, traced
from dynabench.operations.soundness.health import check_schema
from evaluation.jobs import sweep_all
from evaluation.submissions.practice.serve import note_this_host

MESSAGES_PER_PROCESS = 20  # that a worker answers before a fresh one takes its place
POLL_SECONDS = 1.0
MIGRATION_POLL_SECONDS = 2.0
SWEEP_SECONDS = 30.0
MINUTE_SECONDS = 60.0
GRACE_SECONDS = 50.0  # for jobs to end; docs/operators.md gives the whole a minute
T = TypeVar("T")

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Do the jobs of the queue until Ctrl-C; it replaces workers that die or hang."

    def handle(self, *args: Any, **options: Any) -> None:
        # A deployment may start workers before its migrations have ended.
        while not is_migrated():
            time.sleep(MIGRATION_POLL_SECONDS)
        connections.close_all()  # none is shared with the processes
        import_module("scipy.special")  # sooner or later each would load a copy of its own
        gc.freeze()  # collecting garbage would copy every page that the processes share
        workers = range(1, settings.Q_CLUSTER["workers"] + 1)
        practice = range(1, settings.PRACTICE_MODELS + 1)
        processes: dict[str, Callable[[], None]] = {f"worker {n}": answer_messages for n in workers}
        # A process of its own, so that no long job keeps it waiting.
        processes["minutely"] = run_scheduled_jobs
        processes |= {f"practice {n}": serve_practice for n in practice}
        keep({"sweeper": sweep_often} | processes, GRACE_SECONDS)


def is_migrated() -> bool:
    """Return whether the database has the tables of this version.

    A new version's workers may start before its migrations have run.
    """
    schema = run_patiently(check_schema)
    if schema and schema.state != "ok":
        logger.warning("%s", schema.message)
    return schema is not None and schema.state == "ok"


def serve_practice() -> None:
    """Answer the messages for practice models, and record that this machine does so."""

    def take() -> str | None:
        note_this_host()
        return queue.take_message(is_apart=True)

    answer_messages(take)


def answer_messages(take: Callable[[], str | None] = queue.take_message) -> None:
    """Answer messages one after the other until this process should be replaced by a new one.

    take: returns the next message of the queue, or None.
    """
    with traced("dynabench-queue") if settings.HAS_TRACES else nullcontext():
        for _ in range(MESSAGES_PER_PROCESS):
            # Nobody is told of new messages: each worker looks once a second.
            while (message := run_patiently(take)) is None:
                if not pause(POLL_SECONDS):
                    return
            is_at_work()
            with span("answer message"):
                queue.answer(message)
            if must_end():
                return


def sweep_often() -> None:
    """Sweep the rows at regular intervals, even if no message arrives."""
    while not must_end():
        is_at_work()
        run_patiently(sweep)
        pause(SWEEP_SECONDS)


def sweep() -> None:
    """Release the leases of dead workers, and enqueue waiting jobs."""
    try:
        with noted("sweep"):
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
        run_patiently(do_what_is_due)
        pause(MINUTE_SECONDS)


def run_patiently(ask: Callable[[], T]) -> T | None:
    """Return the result of `ask`, or None after a pause if the database does not answer."""
    # As Django does before each request: a connection may be too old, or broken.
    close_old_connections()
    try:
        return ask()
    except Error as error:
        logger.warning("The database is awaited: %s", str(error).strip())
        connection.close()
        pause(5)
        return None
