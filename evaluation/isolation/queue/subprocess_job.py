"""Heavy work of a job in a separate process, while the worker watches and keeps the lease.

The process writes JSON objects to its standard output, one a line: `{"progress": 0.4, "message":
"epoch 2"}` as often as it likes and at the end `{"report": {…}}`, `{"error": "…"}` or, where it
cannot be done now, `{"wait": "…"}`, or `{"away": "…"}` for want of a server of others. When the
worker is killed the pipe breaks, and so the process ends too.
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
from evaluation.isolation.queue.lifecycle import carry_through
from evaluation.models import Job
from serving.hub import HubAwayError

logger = logging.getLogger(__name__)

BEAT_SECONDS = 2.0
TIME_LIMIT_SECONDS = 5 * 3600.0
Show = Callable[[float, str], None]
Work = Callable[[Show], dict[str, Any]]


def carry_out(job: Job, arguments: Iterable[str], show: Show | None = None) -> None:
    """Run `manage.py ARGUMENTS` for a claimed job, and store its report or error.

    show: receives progress and message at each heartbeat. Any exception kills the process. Raises
    LeaseLost.
    """
    carry_through(job, lambda job, heartbeat: _run(job, heartbeat, arguments, show))


def _run(job: Job, heartbeat: Heartbeat, arguments: Iterable[str], show: Show | None) -> None:
    # The checks of the system would import every view, for a second.
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments, "--skip-checks"]
    # Threads that wait without spinning leave the cores to those that work.
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=settings.BASE_DIR, env=environment
    ) as process:
        assert process.stdout is not None
        news: dict[str, Any] = {}
        reader = threading.Thread(target=_read, args=[process.stdout, news], daemon=True)
        reader.start()
        try:
            code = _watch(process, job, heartbeat, news, show)
        finally:  # also when the lease is lost: nobody would keep what it makes
            process.kill()
            reader.join()
    if code == 0 and "wait" in news:
        raise NotNow(news["wait"])
    if code == 0 and "away" in news:
        raise ServerAway(news["away"])
    if code != 0 or "report" not in news:
        raise ImpossibleJob(news.get("error") or _describe_exit(code))
    heartbeat.patiently(lambda: leases.finish_job(job, report=news["report"]))


def tell(
    output: TextIOBase, work: Work, failures: type[Exception] | tuple[type[Exception], ...]
) -> None:
    """Call `work` and write its progress, then its report or failure, to `output`.

    Called in the separate process. failures: exceptions whose text is reported as the error.
    """

    def say(**words: Any) -> None:
        output.write(json.dumps(words) + "\n")
        output.flush()

    try:
        report = work(lambda share, words: say(progress=share, message=words))
    except NotNow as why:
        say(wait=str(why))
    except (ServerAway, HubAwayError) as why:
        say(away=str(why))
    except failures as error:
        say(error=str(error))
    else:
        say(report=report)


def _read(lines: IO[bytes], news: dict[str, Any]) -> None:
    """Store the latest value of each kind of message in `news`. Logs all other lines."""
    for line in lines:
        try:
            news.update(json.loads(line))
        except (ValueError, TypeError):
            logger.info("%s", line.decode(errors="replace").rstrip())


def _watch(
    process: "subprocess.Popen[bytes]",
    job: Job,
    heartbeat: Heartbeat,
    news: dict[str, Any],
    show: Show | None,
) -> int | None:
    """Keep the lease until the process ends; return its exit status, None if it took too long."""
    deadline = time.monotonic() + TIME_LIMIT_SECONDS
    while True:
        heartbeat.tell(news.get("progress"), news.get("message"))
        if show:
            show(job.progress, job.message)
        try:
            return process.wait(BEAT_SECONDS)
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                return None


def _describe_exit(code: int | None) -> str:
    """Return why a process ended without reporting a reason."""
    if code is None:
        return f"It took longer than {TIME_LIMIT_SECONDS / 3600:.0f} hours and was stopped."
    if code == -9:
        return gettext_noop("The process was killed, most likely for lack of memory.")
    return f"The process ended with status {code}. The worker's log says why."
