"""Run a job's heavy work in a separate process, while the worker watches and keeps the lease.

The process writes JSON objects to its standard output, one per line: `{"progress": 0.4, "message":
"epoch 2"}` as often as it likes. The last one is `{"report": {…}}`, `{"error": "…"}`,
`{"wait": "…"}` if the work cannot be done now, or `{"away": "…"}` if another server is away. If the
worker is killed, the pipe breaks, which ends the process, too.
"""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from io import TextIOBase
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext_noop

from evaluation.contract import ImpossibleJob, NotNow, ServerAway
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.models import Job
from serving.hub import HubUnavailableError

logger = logging.getLogger(__name__)

BEAT_SECONDS = 2.0
TIME_LIMIT_SECONDS = 5 * 3600.0
ProgressCallback = Callable[[float, str], None]
WorkFunction = Callable[[ProgressCallback], dict[str, Any]]


def run_subprocess_job(
    job: Job, arguments: Iterable[str], report_progress: ProgressCallback | None = None
) -> None:
    """Run `manage.py ARGUMENTS` for a claimed job, and store its report or error.

    report_progress: receives progress and message at each heartbeat. Any exception kills the
    process. Raises LeaseLost.
    """
    do_job_work(
        job, lambda job, heartbeat: _run_command(job, heartbeat, arguments, report_progress)
    )


def _run_command(
    job: Job,
    heartbeat: Heartbeat,
    arguments: Iterable[str],
    report_progress: ProgressCallback | None,
) -> None:
    # Django's system checks would import every view, which takes a second.
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments, "--skip-checks"]
    # Waiting threads must not spin, so that the cores are free for working ones.
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=settings.BASE_DIR, env=environment
    ) as process:
        assert process.stdout is not None
        latest_values: dict[str, Any] = {}
        reader = threading.Thread(
            target=_read_messages, args=[process.stdout, latest_values], daemon=True
        )
        reader.start()
        try:
            exit_status = _watch_process(process, job, heartbeat, latest_values, report_progress)
        finally:  # also when the lease is lost, because its results would be discarded
            process.kill()
            reader.join()
    if exit_status == 0 and "wait" in latest_values:
        raise NotNow(latest_values["wait"])
    if exit_status == 0 and "away" in latest_values:
        raise ServerAway(latest_values["away"])
    if exit_status != 0 or "report" not in latest_values:
        raise ImpossibleJob(latest_values.get("error") or _describe_exit(exit_status))
    heartbeat.call_patiently(lambda: leases.finish_job(job, report=latest_values["report"]))


def report_work(
    output: TextIOBase, work: WorkFunction, failures: type[Exception] | tuple[type[Exception], ...]
) -> None:
    """Call `work` and write its progress, then its report or failure, to `output`.

    Called in the separate process. failures: exceptions whose text is reported as the error.
    """

    def write_message(**message: Any) -> None:
        output.write(json.dumps(message) + "\n")
        output.flush()

    try:
        report = work(lambda share, message: write_message(progress=share, message=message))
    except NotNow as error:
        write_message(wait=str(error))
    except (ServerAway, HubUnavailableError) as error:
        write_message(away=str(error))
    except failures as error:
        write_message(error=str(error))
    else:
        write_message(report=report)


def _read_messages(lines: IO[bytes], latest_values: dict[str, Any]) -> None:
    """Store the latest value of each kind of message in `progress_values`. Logs all other lines."""
    for line in lines:
        try:
            latest_values.update(json.loads(line))
        except (ValueError, TypeError):
            logger.info("%s", line.decode(errors="replace").rstrip())


def _watch_process(
    process: "subprocess.Popen[bytes]",
    job: Job,
    heartbeat: Heartbeat,
    latest_values: dict[str, Any],
    report_progress: ProgressCallback | None,
) -> int | None:
    """Keep the lease until the process ends; return its exit status, None if it took too long."""
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    while True:
        heartbeat.report_progress(latest_values.get("progress"), latest_values.get("message"))
        if report_progress:
            report_progress(job.progress, job.message)
        try:
            return process.wait(BEAT_SECONDS)
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                return None


def _describe_exit(exit_status: int | None) -> str:
    """Return why a process ended without reporting a reason."""
    if exit_status is None:
        return f"It took longer than {TIME_LIMIT_SECONDS / 3600:.0f} hours and was stopped."
    if exit_status == -9:
        return gettext_noop("The process was killed, most likely because it ran out of memory.")
    return f"The process ended with status {exit_status}. The worker's log says why."
