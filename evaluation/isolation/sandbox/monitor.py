"""Monitor one run, wherever the model runs: its answers, log, usage and end."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from evaluation.contract import BeatCallback, Ending, InvalidOutput, LineCallback, Outcome, Runnable
from evaluation.heartbeat import BEAT_SECONDS, call_with_beat
from evaluation.isolation.sandbox.advice import find_advice_by_code
from evaluation.isolation.sandbox.harness import singles
from evaluation.isolation.sandbox.limits import LimitExceeded, Limits
from evaluation.isolation.sandbox.logs import Tail
from evaluation.isolation.sandbox.output import LineSplitter
from evaluation.isolation.sandbox.usage import ResourceSample, RunMeasurements

CHECK_INTERVAL_SECONDS = 0.2  # between two checks of clock, memory and output
READ_BYTES = 65536
SINGLE_SECONDS_START = f'{{"{singles.SECONDS_KEY}"'.encode()
T = TypeVar("T")


class Runner(Protocol):
    """A way to run a model on examples, such as in the sandbox or at a remote endpoint."""

    name: str

    def run(
        self,
        model: Runnable,
        inputs: Path,
        limits: Limits,
        *,
        take: LineCallback,
        beat: BeatCallback,
    ) -> Ending:
        """Run a model on the examples of a file, and return how it ended.

        `inputs` has one example per line: `{"id": opaque, "inputs": {field: value}}`. The model's
        failures are reported in the ending, not raised. Exceptions of `beat` are propagated after
        the model has been stopped.
        """


class Monitor:
    """A monitor of one run.

    is_trusted: whether our own harness runs the model, not a program of the submitter. take_sample:
    returns the model's current resource use, None if unknown. watches_memory: whether only the
    samples enforce the memory limit.
    """

    watches_memory = False

    def __init__(
        self, limits: Limits, take: LineCallback, beat: BeatCallback, *, is_trusted: bool
    ) -> None:
        self.limits, self.is_trusted = limits, is_trusted
        self.beat_error: Exception | None = None
        self.take_sample: Callable[[], ResourceSample | None] = lambda: None
        self.measurements = RunMeasurements(time.monotonic())
        self.tail = Tail(limits.log_bytes)
        self._take, self._call_beat = take, beat
        self._lines = LineSplitter(limits.line_bytes)
        self._beat_at = self._look_at = 0.0
        self._ended_at: float | None = None

    def monitor_run(self, run: Callable[[], Ending]) -> Ending:
        """Call `run` and return how the run ended, with log and usage."""
        try:
            ending = run()
        except LimitExceeded as error:
            ending = error.ending
        except InvalidOutput as error:
            ending = Ending(Outcome.INVALID_OUTPUT, sentence=str(error))
        ended_at = self._ended_at
        if ended_at is None:
            ended_at = time.monotonic()
        usage, warning = self.measurements.compute_usage(ended_at, is_trusted=self.is_trusted)
        if warning:
            ending = replace(ending, warnings=(*ending.warnings, warning))
        return replace(ending, usage=usage, log=self.tail.get_text())

    def start_clock(self) -> None:
        """Start measuring the model's time."""
        self.measurements.started_at = time.monotonic()

    def stop_clock(self) -> None:
        """Stop measuring the model's time, so that later waiting does not count."""
        self._ended_at = time.monotonic()

    def process_output(self, data: bytes) -> None:
        """Process bytes from standard output. Raises InvalidOutput and LimitExceeded."""
        # Before storing the data, because a model may write endlessly.
        self.limits.check_output(self._lines.size + len(data), self._lines.count)
        self._read_answers(self._lines.feed(data))

    def process_last_line(self) -> None:
        """Process the last line after standard output has ended. Raises InvalidOutput."""
        self._read_answers(self._lines.flush())

    def check_limits(self) -> None:
        """Take a sample and call `beat`, each if due, and check the limits.

        Raises LimitExceeded. Propagates exceptions of `beat`.
        """
        now = time.monotonic()  # a clock that cannot be set back while a model runs
        if now >= self._look_at:
            self.measurements.record_sample(self.take_sample(), now)
            self._look_at = now + CHECK_INTERVAL_SECONDS
        if now >= self._beat_at:
            self._beat()
        used_bytes = 0
        if self.watches_memory and self.measurements.last_sample:
            used_bytes = self.measurements.last_sample.memory_bytes
        self.limits.check_usage(
            seconds=now - self.measurements.started_at,
            memory_bytes=used_bytes,
            answers=self._lines.count,
        )

    def call_patiently(self, call: Callable[[], T]) -> T:
        """Return the result of a call that may take long, renewing the lease during the call."""
        return call_with_beat(call, self._beat)

    def build_oom_ending(self) -> Ending:
        """Return the ending of a model that the kernel killed for lack of memory."""
        return self.limits.build_oom_ending(self._lines.count)

    def build_failed_ending(self, code: int) -> Ending:
        """Return the ending of a model with this exit code.

        Our harness writes the reason in its last line; other models write it to their log.
        """
        last_line = self.tail.get_text().strip().rpartition("\n")[2]
        if self.is_trusted and code == 1 and last_line:
            return Ending(Outcome.MODEL_ERROR, sentence=last_line[:500])
        return Ending(
            Outcome.MODEL_ERROR, sentence=f"{_describe_exit(code)} {find_advice_by_code(code)}"
        )

    def _read_answers(self, lines: Iterator[bytes]) -> None:
        """Pass complete lines on, except the harness's line with the times of single examples."""
        count = 0
        for line in lines:
            if self.is_trusted and line.startswith(SINGLE_SECONDS_START):
                self.measurements.single_seconds = json.loads(line)[singles.SECONDS_KEY]
                continue
            self._take(line)
            count += 1
        if count:
            self.measurements.record_answers(count, time.monotonic())

    def _beat(self) -> None:
        """Call `beat`.

        Stores its exception, so that it is not mistaken for an error of the engine.
        """
        self._beat_at = time.monotonic() + BEAT_SECONDS
        try:
            self._call_beat()
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
