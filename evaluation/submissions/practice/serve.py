"""Do a practice run, from its claim to the end of its container."""

import json
import logging
import socket
import tempfile
import time
import uuid
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext_noop

from core.jobs.keeper import must_end
from evaluation.contract import BeatCallback, ImpossibleJob, InvalidOutput, Outcome, Runnable
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.attempt_keys import TEMPORARY_PREFIX
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.isolation.sandbox.choose import NO_ENGINE_MESSAGE, NoEngine, has_engine
from evaluation.isolation.sandbox.images import ImageRefused
from evaluation.isolation.sandbox.monitor import CHECK_INTERVAL_SECONDS, Runner
from evaluation.isolation.sandbox.writing import ChatFormatter, parse_answer_line
from evaluation.kinds import KINDS
from evaluation.models import PracticeRun
from evaluation.runs.carriers import choose_practice_sandbox
from evaluation.runs.chat.asking import UNUSED_URL, make_endpoint_config
from evaluation.runs.endpoints import CannotFetch, make_prompt_endpoint
from evaluation.runs.runners import fetch_model, get_machine_limits
from evaluation.submissions.practice import services
from tasks.targets.endpoints.answers import expect_object, parse_strict_json
from tasks.targets.endpoints.base import EndpointError

logger = logging.getLogger(__name__)

IDLE_TIMEOUT = timedelta(minutes=3)
"""The time without a question after which a model ends."""
HOST_NOTE_SECONDS = 60.0
"""The interval at which a machine records that it is available."""
_noted_at = -HOST_NOTE_SECONDS


class RunEnded(Exception):
    """Raised to end a run: nobody has asked for a while, or this process must end."""


def record_this_host() -> None:
    """Record once a minute that this machine can run models, if a container engine responds."""
    # Called at each heartbeat, every two seconds.
    global _noted_at
    if time.monotonic() - _noted_at < HOST_NOTE_SECONDS:
        return
    _noted_at = time.monotonic()
    if has_engine():
        services.record_host(socket.gethostname())


class Exchange:
    """The exchange of questions and answers with a run's model, one per line.

    warm_up: the inputs of our own first question; its answer shows that the model runs.
    reader: builds the messages for a language model and parses its texts; None for other models.
    """

    def __init__(
        self, run: PracticeRun, warm_up: Mapping[str, Any], reader: ChatFormatter | None = None
    ) -> None:
        self._run, self._first, self._reads = run, uuid.uuid4(), reader
        self._inputs: Mapping[str, Any] = {}
        self._question: uuid.UUID | None = None
        self._answered: uuid.UUID | None = None
        self._warm_up = json.dumps({"id": self._first.hex, "inputs": warm_up})

    @property
    def is_answered(self) -> bool:
        """Return whether the last question was answered."""
        return self._question == self._answered

    def get_next_line(self) -> bytes:
        """Return the line of the next question; empty if there is none yet. Raises RunEnded."""
        if self._question is None:
            self._question = self._first
            return self._build_sent_line(self._warm_up)
        # Questions are sent by the row, because web processes and workers share only the database.
        columns = ("ready_at", "asked_at", "question_id", "question")
        ready_at, asked_at, key, line = PracticeRun.objects.values_list(*columns).get(
            pk=self._run.pk
        )
        used_at = max(filter(None, (ready_at, asked_at)), default=timezone.now())
        if must_end() or timezone.now() - used_at > IDLE_TIMEOUT:
            raise RunEnded
        if not ready_at or key in (None, self._question):
            return b""
        self._question = key
        return self._build_sent_line(line)

    def _build_sent_line(self, line: str) -> bytes:
        """Return the question's line as the model reads it: with messages for a language model."""
        if self._reads:
            question = json.loads(line)
            self._inputs = question["inputs"]
            line = json.dumps(
                {"id": question["id"], "messages": self._reads.build_visible_messages(self._inputs)}
            )
        return line.encode() + b"\n"

    def take(self, line: bytes) -> None:
        """Store an answer for the person who asked. Ignores an empty line. Raises InvalidOutput."""
        line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            return
        try:
            answer_id = uuid.UUID(
                str(expect_object(parse_strict_json(line), "An answer").get("id"))
            )
        except (EndpointError, ValueError) as error:
            raise InvalidOutput(f"The model broke the contract: {error}") from None
        if self._reads:
            line = parse_answer_line(self._reads, self._inputs, line)
        self._answered = answer_id
        if answer_id == self._first:
            services.record_ready(self._run)
        else:
            services.store_answer(self._run, answer_id, line.decode())


def serve_run(run: PracticeRun, warm_up: Mapping[str, Any]) -> None:
    """Run the model of a claimed practice run until nobody has asked for IDLE_TIMEOUT.

    Leaves no container. Raises LeaseLost.
    """
    do_job_work(run, lambda run, heartbeat: _serve_run(run, heartbeat, warm_up))


def _serve_run(run: PracticeRun, heartbeat: leases.Heartbeat, warm_up: Mapping[str, Any]) -> None:
    """Run the model, and raise ImpossibleJob for any problem. Nothing is retried, as people wait.

    Also raises LeaseLost.
    """
    error = ""
    try:
        endpoint_config = make_endpoint_config(run.submission.task.config)
        reader = None
        if KINDS[run.submission.kind].writes_here:
            reader = make_prompt_endpoint(run.submission, UNUSED_URL)
        error = _run_model(
            run, heartbeat, Exchange(run, endpoint_config.select_fields(warm_up), reader)
        )
    except leases.LeaseLost:
        raise
    except (RunEnded, leases.JobOverdue):
        pass
    except (CannotFetch, NoEngine, ImageRefused) as problem:
        error = str(problem)
    except Exception as problem:
        logger.exception("%s", run)
        error = f"The platform failed ({type(problem).__name__}). The worker's log says more."
    if error:
        raise ImpossibleJob(error)
    heartbeat.call_patiently(lambda: leases.finish_job(run))


def _run_model(run: PracticeRun, heartbeat: leases.Heartbeat, exchange: Exchange) -> str:
    """Run the model until it ends, and return the reason.

    Raises the exceptions that `_serve_run` catches.
    """

    def beat() -> None:
        heartbeat.beat()
        record_this_host()

    if not has_engine():
        raise NoEngine(NO_ENGINE_MESSAGE)
    heartbeat.begin_step(0.0, gettext_noop("fetching the model"))
    with (
        tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX) as folder,
        fetch_model(run.submission, beat) as model,
    ):
        heartbeat.begin_step(0.5, gettext_noop("starting the model"))
        inputs = Path(folder, "inputs.jsonl")
        # Our harness and our shim read standard input; a submitter's image reads a file.
        if model.folder or model.adapter != "jsonl":
            limits = replace(get_machine_limits(), seconds=services.MAX_RUN_TIME.total_seconds())
            runner = choose_practice_sandbox(model, run, exchange.get_next_line)
            return runner.run(model, inputs, limits, take=exchange.take, beat=beat).sentence
        return _run_for_each_question(
            choose_practice_sandbox(model, run), model, inputs, exchange, beat
        )


def _run_for_each_question(
    runner: Runner, model: Runnable, inputs: Path, exchange: Exchange, beat: BeatCallback
) -> str:
    """Run an image that reads its input from a file, in a new container for each question.

    Returns the reason why it ended, and raises the same exceptions as `_run_model`.
    """
    while True:
        line = exchange.get_next_line()
        if not line:
            beat()
            time.sleep(CHECK_INTERVAL_SECONDS)
            continue
        inputs.write_bytes(line)
        limits = get_machine_limits().restrict_for_check()
        ending = runner.run(model, inputs, limits, take=exchange.take, beat=beat)
        if ending.outcome != Outcome.OK:
            return ending.sentence
        if not exchange.is_answered:
            return gettext_noop("The model ended without an answer.")
