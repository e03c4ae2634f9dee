"""The monitoring of one run, wherever the model runs: its answers, log, usage and end."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from evaluation.contract import Beat, Ending, InvalidOutput, Outcome, Runnable, Take
from evaluation.heartbeat import BEAT_SECONDS, call_with_beat
from evaluation.isolation.sandbox.cures import cure_of_code
from evaluation.isolation.sandbox.harness import singles
from evaluation.isolation.sandbox.limits import LimitExceeded, Limits
from evaluation.isolation.sandbox.logs import Tail
from evaluation.isolation.sandbox.output import Lines
from evaluation.isolation.sandbox.usage import Pace, Sample

LOOK_SECONDS = 0.2  # between two looks at clock, memory and output
READ_BYTES = 65536
SINGLE_SECONDS_START = f'{{"{singles.KEY}"'.encode()
T = TypeVar("T")


class Runner(Protocol):
    """A way to run a model on examples, such as in the sandbox or at a remote endpoint."""

    name: str

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """Run a model on the examples of a file, and return how it ended.

        `inputs` has one example per line: `{"id": opaque, "inputs": {field: value}}`. The model's
        failures are reported in the ending, not raised. Exceptions of `beat` are propagated after
        the model has been stopped.
        """


class Monitor:
    """A monitor of one run.

    trusted: whether the harness is ours. sample: returns the model's current resource use, None if
    unknown. watches_memory: whether only the samples enforce the memory limit.
    """

    watches_memory = False

    def __init__(self, limits: Limits, take: Take, beat: Beat, *, trusted: bool) -> None:
        self.limits, self.trusted = limits, trusted
        self.beat_error: Exception | None = None
        self.sample: Callable[[], Sample | None] = lambda: None
        self.pace = Pace(time.monotonic())
        self.tail = Tail(limits.log_bytes)
        self._take, self._tell = take, beat
        self._lines = Lines(limits.line_bytes)
        self._beat_at = self._look_at = 0.0
        self._ended_at: float | None = None

    def ending(self, run: Callable[[], Ending]) -> Ending:
        """Call `run` and return how the run ended, with log and usage."""
        try:
            end = run()
        except LimitExceeded as over:
            end = over.ending
        except InvalidOutput as problem:
            end = Ending(Outcome.INVALID_OUTPUT, sentence=str(problem))
        ended_at = self._ended_at
        if ended_at is None:
            ended_at = time.monotonic()
        usage, warning = self.pace.usage(ended_at, trusted=self.trusted)
        if warning:
            end = replace(end, warnings=(*end.warnings, warning))
        return replace(end, usage=usage, log=self.tail.text())

    def started(self) -> None:
        """Start measuring the model's time."""
        self.pace.start = time.monotonic()

    def ended(self) -> None:
        """Stop measuring the model's time, so that later waiting does not count."""
        self._ended_at = time.monotonic()

    def wrote(self, data: bytes) -> None:
        """Process bytes from standard output. Raises InvalidOutput and LimitExceeded."""
        # Before the data is kept: a model may write without end.
        self.limits.check_output(self._lines.size + len(data), self._lines.count)
        self._answers(self._lines.feed(data))

    def closed(self) -> None:
        """Process the last line after standard output has ended. Raises InvalidOutput."""
        self._answers(self._lines.end())

    def look(self) -> None:
        """Take a sample and call `beat`, each if due, and check the limits.

        Raises LimitExceeded. Propagates exceptions of `beat`.
        """
        now = time.monotonic()  # a clock that nobody can set back while a model runs
        if now >= self._look_at:
            self.pace.sampled(self.sample(), now)
            self._look_at = now + LOOK_SECONDS
        if now >= self._beat_at:
            self._beat()
        used_bytes = 0
        if self.watches_memory and self.pace.now:
            used_bytes = self.pace.now.memory_bytes
        self.limits.check_use(
            seconds=now - self.pace.start, memory_bytes=used_bytes, answers=self._lines.count
        )

    def patiently(self, call: Callable[[], T]) -> T:
        """Return the result of a call that may take long, renewing the lease during the call."""
        return call_with_beat(call, self._beat)

    def oom(self) -> Ending:
        """Return the ending of a model that the kernel killed for lack of memory."""
        return self.limits.oom(self._lines.count)

    def failed(self, code: int) -> Ending:
        """Return the ending of a model with this exit code.

        Our harness writes the reason in its last line; other models write it to their log.
        """
        last = self.tail.text().strip().rpartition("\n")[2]
        if self.trusted and code == 1 and last:
            return Ending(Outcome.MODEL_ERROR, sentence=last[:500])
        return Ending(Outcome.MODEL_ERROR, sentence=f"{_describe_exit(code)} {cure_of_code(code)}")

    def _answers(self, lines: Iterator[bytes]) -> None:
        """Pass complete lines on, except the harness's line with the times of single examples."""
        count = 0
        for line in lines:
            if self.trusted and line.startswith(SINGLE_SECONDS_START):
                self.pace.alone = json.loads(line)[singles.KEY]
                continue
            self._take(line)
            count += 1
        if count:
            self.pace.answered(count, time.monotonic())

    def _beat(self) -> None:
        """Call `beat`.

        Stores its exception, so that it is not mistaken for an error of the engine.
        """
        self._beat_at = time.monotonic() + BEAT_SECONDS
        try:
            self._tell()
        except Exception as error:
            self.beat_error = error
            raise


def _describe_exit(code: int) -> str:
    """Return a sentence that explains an exit code."""
    if code in (126, 127):  # as shells and Docker report it
        return f"The model's command cannot be started (exit code {code})."
    with suppress(ValueError):
        name = signal.Signals(code - 128).name
        return f"The model was ended by {name} from inside the sandbox (exit code {code})."
    return f"The model ended with exit code {code}."
