"""A run for practice, from its claim to the end of its container."""

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
from evaluation.contract import Beat, ImpossibleJob, InvalidOutput, Outcome, Runnable
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.attempt_keys import TEMPORARY_PREFIX
from evaluation.isolation.queue.lifecycle import carry_through
from evaluation.isolation.sandbox.choose import NO_ENGINE, NoEngine, has_engine
from evaluation.isolation.sandbox.images import ImageRefused
from evaluation.isolation.sandbox.monitor import LOOK_SECONDS, Runner
from evaluation.isolation.sandbox.writing import Reads, parse_answer_line
from evaluation.kinds import KINDS
from evaluation.models import PracticeRun
from evaluation.runs.carriers import choose_practice_sandbox
from evaluation.runs.chat.asking import UNUSED_URL, make_endpoint_config
from evaluation.runs.endpoints import CannotFetch, make_prompt_endpoint
from evaluation.runs.runners import fetch_model, machine_limits
from evaluation.submissions.practice import services
from tasks.targets.endpoints.answers import expect_object, strict_json
from tasks.targets.endpoints.base import EndpointError

logger = logging.getLogger(__name__)

IDLE_TIMEOUT = timedelta(minutes=3)
"""Without a question, after which a model ends."""
HOST_NOTE_SECONDS = 60.0
"""How often a machine says that it is there."""
_noted_at = -HOST_NOTE_SECONDS


class RunOver(Exception):
    """Raised to end a run because no questions come any more, or this process must end."""


def note_this_host() -> None:
    """Record once a minute that this machine can run models, if a container engine responds."""
    # Called at each heartbeat, every two seconds.
    global _noted_at
    if time.monotonic() - _noted_at < HOST_NOTE_SECONDS:
        return
    _noted_at = time.monotonic()
    if has_engine():
        services.note_host(socket.gethostname())


class Exchange:
    """The exchange of questions and answers with a run's model, one per line.

    warm_up: the inputs of our own first question; its answer shows that the model runs.
    reader: builds the messages for a language model and parses its texts; None for other models.
    """

    def __init__(
        self, run: PracticeRun, warm_up: Mapping[str, Any], reader: Reads | None = None
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

    def next(self) -> bytes:
        """Return the line of the next question; empty if there is none yet. Raises Over."""
        if self._question is None:
            self._question = self._first
            return self._sent(self._warm_up)
        # People ask through the row: web processes and workers share only the database.
        columns = ("ready_at", "asked_at", "question_id", "question")
        ready_at, asked_at, key, line = PracticeRun.objects.values_list(*columns).get(
            pk=self._run.pk
        )
        used_at = max(filter(None, (ready_at, asked_at)), default=timezone.now())
        if must_end() or timezone.now() - used_at > IDLE_TIMEOUT:
            raise RunOver
        if not ready_at or key in (None, self._question):
            return b""
        self._question = key
        return self._sent(line)

    def _sent(self, line: str) -> bytes:
        """Return the question's line as the model reads it: with messages for a language model."""
        if self._reads:
            question = json.loads(line)
            self._inputs = question["inputs"]
            line = json.dumps({"id": question["id"], "messages": self._reads.asked(self._inputs)})
        return line.encode() + b"\n"

    def take(self, line: bytes) -> None:
        """Store an answer for the person who asked. Ignores an empty line. Raises InvalidOutput."""
        line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            return
        try:
            answer_id = uuid.UUID(str(expect_object(strict_json(line), "An answer").get("id")))
        except (EndpointError, ValueError) as error:
            raise InvalidOutput(f"The model broke the contract: {error}") from None
        if self._reads:
            line = parse_answer_line(self._reads, self._inputs, line)
        self._answered = answer_id
        if answer_id == self._first:
            services.note_ready(self._run)
        else:
            services.store_answer(self._run, answer_id, line.decode())


def serve(run: PracticeRun, warm_up: Mapping[str, Any]) -> None:
    """Run the model of a claimed practice run until no questions come any more.

    Raises LeaseLost; then, as always, no container is left.
    """
    carry_through(run, lambda run, heartbeat: _serve(run, heartbeat, warm_up))


def _serve(run: PracticeRun, heartbeat: leases.Heartbeat, warm_up: Mapping[str, Any]) -> None:
    """Run the model, and raise ImpossibleJob for any problem. Nothing is retried, as people wait.

    Also raises LeaseLost.
    """
    error = ""
    try:
        endpoint_config = make_endpoint_config(run.submission.task.config)
        reader = None
        if KINDS[run.submission.kind].writes_here:
            reader = make_prompt_endpoint(run.submission, UNUSED_URL)
        error = _run_model(run, heartbeat, Exchange(run, endpoint_config.select(warm_up), reader))
    except leases.LeaseLost:
        raise
    except (RunOver, leases.Overdue):
        pass
    except (CannotFetch, NoEngine, ImageRefused) as problem:
        error = str(problem)
    except Exception as problem:
        logger.exception("%s", run)
        error = f"The platform failed ({type(problem).__name__}). The worker's log says more."
    if error:
        raise ImpossibleJob(error)
    heartbeat.patiently(lambda: leases.finish_job(run))


def _run_model(run: PracticeRun, heartbeat: leases.Heartbeat, talk: Exchange) -> str:
    """Run the model until it ends, and return the reason. Raises what `_serve` catches."""

    def beat() -> None:
        heartbeat.beat()
        note_this_host()

    if not has_engine():
        raise NoEngine(NO_ENGINE)
    heartbeat.begin(0.0, gettext_noop("fetching the model"))
    with (
        tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX) as folder,
        fetch_model(run.submission, beat) as model,
    ):
        heartbeat.begin(0.5, gettext_noop("starting it"))
        inputs = Path(folder, "inputs.jsonl")
        # Our harness and our shim read standard input; an image of the submitter's reads a file.
        if model.folder or model.adapter != "jsonl":
            limits = replace(machine_limits(), seconds=services.MOST_RUN_TIME.total_seconds())
            runner = choose_practice_sandbox(model, run, talk.next)
            return runner.run(model, inputs, limits, take=talk.take, beat=beat).sentence
        return _run_for_each_question(
            choose_practice_sandbox(model, run), model, inputs, talk, beat
        )


def _run_for_each_question(
    runner: Runner, model: Runnable, inputs: Path, talk: Exchange, beat: Beat
) -> str:
    """Run an image that reads a file to its end, with a new container for each question.

    Returns the reason why it ended, and raises the same exceptions as `_run_model`.
    """
    while True:
        line = talk.next()
        if not line:
            beat()
            time.sleep(LOOK_SECONDS)
            continue
        inputs.write_bytes(line)
        limits = machine_limits().for_check()
        ending = runner.run(model, inputs, limits, take=talk.take, beat=beat)
        if ending.outcome != Outcome.OK:
            return ending.sentence
        if not talk.is_answered:
            return gettext_noop("The model ended without an answer.")
