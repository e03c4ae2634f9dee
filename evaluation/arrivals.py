"""The check of what was handed in: unpacked with care, five examples answered, then kept."""

import gzip
import hashlib
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.core.files import File
from django.db import transaction
from django.utils import timezone

from dynabench.lib.encryption import decrypt
from evaluation import archives, image_archives, leases, runs, sandbox_images
from evaluation.answers import Answers
from evaluation.contract import GIB, MIB, InvalidOutput, Limits, Outcome, Runnable, Runner
from evaluation.endpoint_runner import EndpointRunner
from evaluation.evaluating import Sent, answers_for
from evaluation.fetching import endpoint_for, runnable
from evaluation.janitor import TEMPORARY, run_key
from evaluation.logs import redacted, visible
from evaluation.model_cache import CHUNK, digest_of, pack
from evaluation.model_folders import check_folder
from evaluation.models import Submission, Upload
from evaluation.runners import runner_for
from evaluation.sandbox_engine import engine
from evaluation.sets import input_rows
from evaluation.submissions import open_versions
from evaluation.uploads import UploadRefused, assemble, discard
from tasks.endpoints.base import EndpointError
from tasks.models import Context, Task
from tasks.serving.errors import MisconfiguredError
from tasks.serving.spec import ModelSpec, fetch

logger = logging.getLogger(__name__)
Kind = Submission.Kind
T = TypeVar("T")

FIVE = 5
MOST_PROBLEMS = 20
SHOWN = 200  # characters of a line that does not fit
BEAT_SECONDS = 5.0
CHECK_SECONDS = 300.0  # loading a large model from a cold disk takes the most of it
LATER = timedelta(minutes=1)


class Refused(Exception):
    """What was handed in cannot be accepted; the message says why and how to mend it."""

    def __init__(self, message: str, outcome: Outcome = Outcome.REJECTED, log: str = "") -> None:
        super().__init__(message)
        self.outcome, self.log = outcome, log


REFUSALS = (
    Refused,
    UploadRefused,
    archives.ArchiveRefused,
    sandbox_images.ImageRefused,
    MisconfiguredError,
)


class NotNow(Exception):
    """The check needs what is not here at present; the message tells what it waits for."""


@dataclass(frozen=True)
class Arrived:
    """What was handed in, looked through. file: what is kept of it; model: what can be asked."""

    digest: str
    size: int | None = None
    file: Path | None = None
    model: Runnable | None = None


class Watch:
    """Keeps the check's lease while it is worked on; each call may raise LeaseLost."""

    def __init__(self, submission: Submission) -> None:
        self._submission, self._last = submission, time.monotonic()

    def begin(self, message: str, progress: float) -> None:
        """Tell what is done from now on."""
        leases.heartbeat(self._submission, progress, message)

    def beat(self) -> None:
        """Renew the lease, at most each BEAT_SECONDS."""
        if time.monotonic() - self._last > BEAT_SECONDS:
            self._last = time.monotonic()
            leases.heartbeat(self._submission)

    def during(self, work: Callable[[], T]) -> T:
        """The result of long work that cannot beat itself, and does not touch the database."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(work)
            while True:
                try:
                    return future.result(BEAT_SECONDS)
                except TimeoutError:
                    if future.done():
                        raise
                    self.beat()


def check(submission: Submission) -> None:
    """Check a claimed submission and queue its evaluations, or say what is wrong with it.

    Raises LeaseLost; then nothing was stored.
    """
    watch = Watch(submission)
    try:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY) as name:
            folder = Path(name)
            watch.begin("reading what was handed in", 0.1)
            arrived = RECEIVE[submission.kind](submission, folder, watch)
            if arrived.model:
                watch.begin("answering five examples", 0.5)
                _answer_five(submission, arrived.model, folder, watch)
            watch.begin("storing it", 0.9)
            _accept(submission, arrived, watch)
    except leases.LeaseLost:
        raise
    except REFUSALS as refused:
        _refuse(submission, refused)
    except EndpointError as error:
        _refuse(submission, Refused(str(error)))
    except NotNow as reason:
        leases.put_back(submission, timezone.now() + LATER, str(reason))
    except Exception as error:
        logger.exception("%s", submission)
        _try_again(submission, f"The platform failed ({type(error).__name__}).")


def _refuse(submission: Submission, refused: Exception) -> None:
    outcome = getattr(refused, "outcome", Outcome.REJECTED)
    log = redacted(getattr(refused, "log", ""), texts=(), secrets=_secrets(submission))
    leases.fail(submission, str(refused), outcome=outcome, log=log)
    if submission.upload:
        discard(submission.upload)


def _secrets(submission: Submission) -> list[str]:
    return [decrypt(submission.secret)] if submission.secret else []


def _try_again(submission: Submission, why: str) -> None:
    """Queue a check that the platform failed, a few times; then it ends so, and costs no quota."""
    if submission.attempts < leases.MAX_ATTEMPTS:
        later = timezone.now() + submission.attempts * LATER
        leases.put_back(submission, later, why, counts=True)
    else:
        leases.fail(submission, why, outcome=Outcome.INFRASTRUCTURE)


def _accept(submission: Submission, arrived: Arrived, watch: Watch) -> None:
    """Keep the checked files, end the check and queue the evaluations."""
    if arrived.file:
        with arrived.file.open("rb") as file:
            submission.file.save(arrived.file.name, _Watched(file, watch), save=False)
    results = {"digest": arrived.digest, "size": arrived.size, "file": submission.file.name}
    try:
        with transaction.atomic():
            leases.finish(submission, outcome=Outcome.OK, **results)
            runs.request_runs(submission=submission, actor=submission.owner)
    except BaseException:
        if arrived.file:
            submission.file.delete(save=False)
        raise
    if submission.upload:
        discard(submission.upload)


class _Watched(File):  # type: ignore[type-arg]
    """A file that keeps the lease while a storage reads it."""

    def __init__(self, file: Any, watch: Watch) -> None:
        super().__init__(file)
        self._watch = watch

    def chunks(self, chunk_size: int | None = None) -> Iterator[Any]:
        for chunk in super().chunks(chunk_size or CHUNK):
            self._watch.beat()
            yield chunk


# What each kind brings.


def _directory(submission: Submission, folder: Path, watch: Watch) -> Arrived:
    model = folder / "model"
    with assemble(_upload(submission), watch.beat) as path:
        archives.unpack(path, model, beat=watch.beat)
    return _weights(submission.task, model, folder, watch)


def _hub(submission: Submission, folder: Path, watch: Watch) -> Arrived:
    spec = ModelSpec(submission.name, submission.source, submission.revision)
    model = watch.during(lambda: fetch(spec))  # never a folder of this machine of that name
    return _weights(submission.task, model, folder, watch)


def _weights(task: Task, model: Path, folder: Path, watch: Watch) -> Arrived:
    """A folder of weights; what is kept of it is a plain tar."""
    model = check_folder(model, task.config)
    kept = folder / "model.tar"
    with kept.open("wb") as file:
        pack(model, file, watch.beat)
    digest = digest_of(model, watch.beat)
    return Arrived(digest, kept.stat().st_size, kept, runnable(task, folder=model))


def _image(submission: Submission, folder: Path, watch: Watch) -> Arrived:
    if engine() is None:
        raise NotNow("It waits for a worker with a container engine (Docker).")
    kept = None
    if submission.upload:
        kept = folder / "image.tar"
        with assemble(submission.upload, watch.beat) as path:
            image_archives.check_image(path, beat=watch.beat)
            shutil.move(path, kept)
        found = watch.during(lambda: sandbox_images.load_image(kept))
    else:
        found = sandbox_images.pull_image(submission.source, watch.beat)
    facts = sandbox_images.inspect_image(found)
    # Known from here on, so that it is removed from the engine again whatever becomes of it.
    Submission.objects.filter(pk=submission.pk).update(digest=facts.id)
    if problems := sandbox_images.check_image(facts):
        raise Refused("\n".join(problems))
    model = runnable(submission.task, image=facts.id, adapter=submission.adapter)
    return Arrived(facts.id, facts.size, kept, model)


def _endpoint(submission: Submission, folder: Path, watch: Watch) -> Arrived:
    return Arrived("", model=runnable(submission.task))


def _predictions(submission: Submission, folder: Path, watch: Watch) -> Arrived:
    """Every line is read; each that does not fit is named, and so are examples without one."""
    version = submission.evaluation_set
    assert version is not None  # the service sees to it
    uids = [row["uid"] for row in input_rows(version)]
    answers = answers_for(submission.task.config, uids)
    kept, digest, problems = folder / "predictions.jsonl.gz", hashlib.sha256(), Problems()
    with assemble(_upload(submission), watch.beat) as path, gzip.open(kept, "wb") as file:
        for line in _lines(path):
            watch.beat()
            digest.update(line)
            file.write(line)
            problems.take(answers, line.rstrip(b"\r\n"))
    try:
        answers.end()
    except InvalidOutput as error:
        missing = (uid for uid, found in zip(uids, answers.in_order(), strict=True) if not found)
        problems.add(f"{error} The first without an answer: {', '.join(islice(missing, FIVE))}.")
    problems.check()
    return Arrived(digest.hexdigest(), kept.stat().st_size, kept)


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file; one that is too long comes in parts, each of which is refused."""
    with path.open("rb") as file:
        yield from iter(lambda: file.readline(MIB + 2), b"")


def _upload(submission: Submission) -> Upload:
    if submission.upload is None:
        raise Refused("The file is gone. Hand it in again.")
    return submission.upload


RECEIVE: Mapping[str, Callable[[Submission, Path, Watch], Arrived]] = {
    Kind.DIRECTORY: _directory,
    Kind.HUB: _hub,
    Kind.IMAGE: _image,
    Kind.ENDPOINT: _endpoint,
    Kind.PREDICTIONS: _predictions,
}


# Five examples.


class Problems:
    """What is wrong with answers, line by line."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, problem: str) -> None:
        """Note one; too many are too many. Raises Refused."""
        self._found.append(problem)
        if len(self._found) == MOST_PROBLEMS:
            self.check()

    def take(self, answers: Answers, line: bytes) -> None:
        """Keep the answer in a line, or note what is wrong with it and the line itself."""
        try:
            answers.take(line)
        except InvalidOutput as error:
            self.add(f"{error}\n  {visible(line[:SHOWN].decode(errors='replace'))}")

    def check(self, log: str = "") -> None:
        """Raises Refused when there is a problem."""
        if self._found:
            raise Refused("\n".join(self._found), Outcome.INVALID_OUTPUT, log)


def _answer_five(submission: Submission, model: Runnable, folder: Path, watch: Watch) -> None:
    """Have the model answer five examples that may be shown. Raises Refused and NotNow."""
    config = submission.task.config
    sent = Sent(folder / "five.jsonl")
    sent.write(shown_inputs(submission.task), config.model_fields, lambda *_: watch.beat())
    answers, problems = answers_for(config, sent.ids()), Problems()
    ending = _runner(submission, model).run(
        model,
        sent.path,
        check_limits(),
        take=lambda line: problems.take(answers, line),
        beat=watch.beat,
    )
    if ending.outcome == Outcome.INFRASTRUCTURE:
        raise NotNow(ending.sentence)
    if ending.outcome != Outcome.OK:
        hit = f" Limit: {ending.limit}; measured: {ending.measured}." if ending.limit else ""
        raise Refused(f"{ending.sentence}{hit}", ending.outcome, ending.log)
    if missing := answers.missing():
        problems.add(f"{missing} of {FIVE} examples have no answer.")
    problems.check(ending.log)


def check_limits() -> Limits:
    """What a model may use to answer five examples."""
    return Limits(
        seconds=CHECK_SECONDS,
        memory_bytes=settings.EVALUATION_MEMORY_GIB * GIB,
        cpus=settings.EVALUATION_CPUS,
        output_bytes=MIB,
    )


def _runner(submission: Submission, model: Runnable) -> Runner:
    if submission.kind == Kind.ENDPOINT:
        return EndpointRunner(endpoint_for(submission))
    return runner_for(model, run_key(submission))


def shown_inputs(task: Task) -> list[Mapping[str, Any]]:
    """Five examples that everybody may see, as far as there are some; the last one repeats."""
    found = list(islice(chain(_of_sets(task), _of_config(task), _of_contexts(task)), FIVE))
    return [found[min(place, len(found) - 1)] for place in range(FIVE)]


def _of_sets(task: Task) -> Iterator[Mapping[str, Any]]:
    for version in open_versions(task):
        yield from (row["inputs"] for row in input_rows(version))


def _of_config(task: Task) -> Iterator[Mapping[str, Any]]:
    for case in (*task.config.examples.good, *task.config.examples.bad):
        values = {**case.context, **case.input}
        if all(name in values for name in task.config.model_fields):
            yield values


def _of_contexts(task: Task) -> Iterator[Mapping[str, Any]]:
    """Contexts people were shown; what they wrote to them is not public, so it is a placeholder."""
    contexts = Context.objects.filter(round__task=task).order_by("pk")
    fields: Iterable[Mapping[str, Any]] = contexts.values_list("fields", flat=True)[:FIVE]
    for known in (*fields, {}):
        yield {name: known.get(name, "An example.") for name in task.config.model_fields}
