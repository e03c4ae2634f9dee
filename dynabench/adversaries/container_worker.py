"""Run programs in containers without a network, and check their images. Only workers import it.

A container asks by lines of JSON on standard output, and reads answers from standard input. So it
needs no network, no address and no key, and there is nothing that it could reach but this process.
Each question takes the way of any adversary's: `run_services.RunSlice`.
"""

import json
import tempfile
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop

from core.files.bounded import OutOfBounds, run_bounded
from core.jobs.keeper import must_end
from dynabench.adversaries.container_messages import describe_answer, describe_run
from dynabench.adversaries.kinds.base import Probe
from dynabench.adversaries.kinds.container_lines import (
    ContainerQuestion,
    LineError,
    QuestionError,
    read_question,
)
from dynabench.adversaries.kinds.language import is_foreign
from dynabench.adversaries.models import AdversaryImage, AdversaryRun, AdversaryTry
from dynabench.adversaries.program_services import PROGRAM_LEASE
from dynabench.adversaries.run_services import (
    MAX_FRUITLESS_REPLIES,
    RunSlice,
)
from dynabench.adversaries.run_steps import RunEnded, SliceOver
from evaluation.contract import (
    MIB,
    AttemptFailed,
    BeatCallback,
    Ending,
    ImpossibleJob,
    Outcome,
    Runnable,
)
from evaluation.heartbeat import call_with_beat
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.attempt_keys import TEMPORARY_PREFIX, build_container_key
from evaluation.isolation.queue.leases import Heartbeat, LeaseLost
from evaluation.isolation.queue.lifecycle import do_job_work
from evaluation.isolation.sandbox import images
from evaluation.isolation.sandbox.choose import (
    NO_ENGINE_MESSAGE,
    NoEngine,
    choose_runner,
    has_engine,
)
from evaluation.isolation.sandbox.limits import LimitExceeded, Limits
from evaluation.isolation.uploads.archives import ArchiveRefused
from evaluation.isolation.uploads.chunked import UploadRefused, assemble_upload
from evaluation.isolation.uploads.image_archives import check_image_archive
from evaluation.runs.runners import get_machine_limits
from evaluation.submissions.receiving import UNPACKING_BOUNDS
from tasks.config.loading import validate_inputs
from tasks.models import Context

CONTAINER_SLICE_SECONDS = 600.0
"""How long a container runs before other jobs get their turn; its start may take a while."""
MAX_OUTPUT_BYTES = 16 * MIB
"""For all questions of a container: 100,000 calls with some 160 bytes each."""
MAX_LINE_BYTES = MIB // 4
"""For one question: its longest text, with each character written as \\uXXXX."""
MAX_LOG_BYTES = 16 * 1024
MAX_SILENT_SECONDS = PROGRAM_LEASE.total_seconds()
"""How long a program may think between two questions, as one that asks by the API."""
IMAGE_ERRORS = (images.ImageRefused, ArchiveRefused, UploadRefused, OutOfBounds)
"""Errors in an image itself. Their message is shown to who brought it."""
End = AdversaryRun.End


# Images


def check_arrived_image(image: AdversaryImage) -> None:
    """Check a claimed image: load or pull it, and read what it declares. Nothing of it is run.

    Takes no lock. Raises LeaseLost.
    """
    do_job_work(image, _check_image)


def _check_image(image: AdversaryImage, heartbeat: Heartbeat) -> None:
    heartbeat.begin_step(0.1, gettext_noop("reading the image"))
    digest = provide_image(image, heartbeat.beat)
    # Stored before the checks, because cleanup finds refused images by it.
    leases.store_partial_results(image, digest=digest)
    facts = images.inspect_image(digest)
    if problems := images.find_image_problems(facts):
        raise ImpossibleJob("\n".join(problems))
    heartbeat.call_patiently(lambda: leases.finish_job(image, size=facts.size))


def provide_image(image: AdversaryImage, beat: BeatCallback) -> str:
    """Return the id of an image on this engine, after loading or pulling it if it is missing.

    Raises NoEngine, ImpossibleJob, ServerAway and EngineError.
    """
    if not has_engine():
        raise NoEngine(NO_ENGINE_MESSAGE)
    if image.digest and images.has_image(image.digest):
        return image.digest
    try:
        digest = _fetch_image(image, beat)
    except IMAGE_ERRORS as error:
        raise ImpossibleJob(str(error)) from None
    # A registry's name could point to another image by now, which nobody has allowed.
    if image.digest and digest != image.digest:
        raise ImpossibleJob(f"The image is {digest} now. Bring it again.")
    return digest


def _fetch_image(image: AdversaryImage, beat: BeatCallback) -> str:
    """Pull the image, or load its archive; return its id. Raises one of IMAGE_ERRORS."""
    if image.source:
        return images.pull_image(image.source, settings.SUBMISSION_PRIVATE_HOSTS, beat)
    if image.upload is None:
        raise images.ImageRefused("The image’s archive was deleted. Bring the image again.")
    with assemble_upload(image.upload, beat) as path:
        # In a process of its own: the archive is a stranger's.
        run_bounded(partial(check_image_archive, path), UNPACKING_BOUNDS, beat)
        return call_with_beat(partial(images.load_image, path), beat)


# Runs


def run_container(run: AdversaryRun, heartbeat: Heartbeat, seconds: float | None = None) -> None:
    """Run the container of a leased run until it ends, or until other jobs get their turn.

    seconds: of a first, short slice; None for CONTAINER_SLICE_SECONDS. Leaves no container. Takes
    no lock. Raises RunEnded, SliceOver, WorkStopped and LeaseLost.
    """
    if run.image is None:
        raise ImpossibleJob("The run’s image was deleted. Start another run.")
    image = provide_image(run.image, heartbeat.beat)
    ContainerSlice(run, heartbeat, seconds).work_in(image)


class ContainerSlice(RunSlice):
    """A slice of a run whose program is in a container.

    A container of a later slice begins anew. What it asks again is answered from the log, and costs
    nothing.
    """

    def __init__(self, run: AdversaryRun, heartbeat: Heartbeat, seconds: float | None) -> None:
        super().__init__(run, heartbeat, seconds=seconds or CONTAINER_SLICE_SECONDS)
        # A short slice ends also without a question, because short jobs wait behind it.
        self._is_short = seconds is not None
        self._contexts_by_pk = {context.pk: context for context in self._contexts}
        self._seen_questions: set[tuple[str, bool]] = set()
        self._foreign_count = 0
        self._lines: deque[bytes] = deque([_build_line(describe_run(run))])
        self._line_count = 0
        self._error: Exception | None = None
        self._active_at = time.monotonic()

    def work_in(self, image: str) -> None:
        """Run the container, and store the end of its log.

        Raises RunEnded, SliceOver, WorkStopped and LeaseLost.
        """
        model = Runnable(image=image)
        runner = choose_runner(model, build_container_key(self._run), "docker", self.read_answers)
        with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX) as folder:
            inputs = Path(folder, "unused")
            ending = runner.run(
                model, inputs, self._build_limits(), take=self.take_line, beat=self.beat
            )
        if isinstance(self._error, LeaseLost):
            raise self._error
        # The time since the last question, too: it is the program that took it.
        self._add_use()
        self._heartbeat.call_patiently(
            lambda: leases.store_partial_results(self._run, log=ending.log)
        )
        if self._error is not None:
            raise self._error
        _check_ending(ending)

    def _build_limits(self) -> Limits:
        """Return the site's limits on a model, with the time that is left of the run."""
        return replace(
            get_machine_limits(),
            seconds=max(0.0, 60 * self._run.max_minutes - self._run.seconds),
            output_bytes=MAX_OUTPUT_BYTES,
            line_bytes=MAX_LINE_BYTES,
            log_bytes=MAX_LOG_BYTES,
        )

    # Called while the container runs

    def read_answers(self) -> bytes:
        """Return the lines that the program has not got yet."""
        lines = b"".join(self._lines)
        self._lines.clear()
        return lines

    def beat(self) -> None:
        """Renew the lease. Stops a program that asks nothing, or if this process must end."""
        try:
            self._heartbeat.beat()
            if time.monotonic() - self._active_at > MAX_SILENT_SECONDS:
                raise RunEnded(End.GONE)
            is_over = self._is_short and time.monotonic() > self._slice_ends_at
            if is_over or must_end():
                raise SliceOver
        except Exception as error:
            self._stop(error)

    def take_line(self, line: bytes) -> None:
        """Answer a line of the program. An empty one gets no reply, and many end the run."""
        self._line_count += 1
        try:
            if not line.strip():
                self._count_idle_probe()
                return
            self._lines.append(_build_line(self._reply(line)))
        except Exception as error:
            self._stop(error)
        # After the models have answered: their time isn't the program's silence.
        self._active_at = time.monotonic()

    def _stop(self, error: Exception) -> None:
        """Stop the container because of an error, which `work_in` raises again. Its log is kept."""
        self._error = error
        raise LimitExceeded(Ending(Outcome.CANCELLED)) from error

    def _reply(self, line: bytes) -> Mapping[str, Any]:
        """Return the reply to a line. Raises RunEnded, SliceOver, WorkStopped and LeaseLost."""
        try:
            return self._answer_question(read_question(line))
        except LineError as error:
            raise ImpossibleJob(f"Line {self._line_count} of its output: {error}") from None
        except QuestionError as error:
            self._count_idle_probe()
            return {"error": {"field": error.field, "message": str(error)}}

    def _answer_question(self, question: ContainerQuestion) -> Mapping[str, Any]:
        """Return the models' answer, logged or new. Raises QuestionError, too."""
        context = self._find_context(question)
        probe = Probe(question.text, question.step, question.is_offered)
        self._check_question(question, context)
        full_question = self._build_question(question.label, probe, context)
        key = (full_question.digest, question.is_offered)
        # Also for what is known, so that a program that repeats itself reaches its minutes.
        self._check_budget()
        if key in self._seen_questions:
            self._count_idle_probe()
            known = self._known[full_question.digest]
        else:
            self._idle_count = 0
            self._seen_questions.add(key)
            known = self._follow_up(full_question)
        self._add_use()
        self._run.refresh_from_db(fields=["calls", "examples", "tokens", "cost", "seconds"])
        return describe_answer(AdversaryTry.objects.get(pk=known.pk), self._run)

    def _find_context(self, question: ContainerQuestion) -> Context:
        """Return the text of the round that a question is about. Raises QuestionError."""
        if question.context is not None:
            context = self._contexts_by_pk.get(question.context)
            if context is None:
                raise QuestionError("context", "The round has no such text.")
            return context
        if self._reads(self._contexts[0]):
            raise QuestionError("context", "Say which text of the round this is about.")
        return self._contexts[0]

    def _check_question(self, question: ContainerQuestion, context: Context) -> None:
        """Refuse what people could not write. Raises QuestionError, and RunEnded if it goes on."""
        if question.label not in self._config.goal_choices:
            raise QuestionError("label", "Choose one of the labels of the run.")
        # What only measures may be shorter than what people may write, and in any language.
        if not question.is_offered:
            return
        full_question = self._build_question(question.label, Probe(question.text, ""), context)
        problems = validate_inputs(self._config, context.fields, full_question.inputs)
        if problems:
            raise QuestionError("text", str(next(iter(problems.values()))[0]))
        if not is_foreign(question.text, self._config.language):
            self._foreign_count = 0
            return
        self._foreign_count += 1
        if self._foreign_count > MAX_FRUITLESS_REPLIES:
            raise RunEnded(End.UNUSABLE)
        raise QuestionError("text", "The text is in another language than the task.")


def _build_line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _check_ending(ending: Ending) -> None:
    """Raise what follows from how a container ended; nothing if it ended normally.

    Raises RunEnded, AttemptFailed if the platform is the cause, and ImpossibleJob.
    """
    if ending.outcome == Outcome.OK:
        return
    if ending.outcome == Outcome.TIMEOUT:
        raise RunEnded(End.MINUTES)
    if ending.outcome == Outcome.INFRASTRUCTURE:
        raise AttemptFailed(ending.sentence)
    if ending.outcome == Outcome.OOM:
        raise ImpossibleJob(f"The program needed more memory than {ending.limit}.")
    if ending.outcome == Outcome.OUTPUT_TOO_LARGE:
        raise ImpossibleJob(
            f"The program wrote more than {ending.limit} to standard output. Write only questions "
            "there, and wait for each answer."
        )
    raise ImpossibleJob(ending.sentence.replace("The model", "The program"))
