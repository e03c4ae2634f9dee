"""One run as it is watched, wherever the model runs: its answers, its log, its pace, its end."""

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import NamedTuple, TypeVar

from evaluation.contract import GIB, MIB, Beat, Ending, Limits, Outcome, Take
from evaluation.sandbox.logs import Tail
from evaluation.sandbox.output import Lines
from evaluation.sandbox.usage import Pace, Sample

BEAT_SECONDS = 1.0
LOOK_SECONDS = 0.2  # between two looks at clock, memory and output
READ_BYTES = 65536
T = TypeVar("T")


class End(NamedTuple):
    """How a run ended, without what was measured."""

    outcome: Outcome
    sentence: str = ""
    limit: str = ""
    measured: str = ""
    warning: str = ""


class Watched:
    """What is known of one run while it lasts.

    sample: what the model uses now, None when that cannot be told. trusted: the harness is ours.
    """

    def __init__(self, limits: Limits, take: Take, beat: Beat, *, trusted: bool) -> None:
        self.limits, self.trusted = limits, trusted
        self.beat_error: Exception | None = None
        self.sample: Callable[[], Sample | None] = lambda: None
        self.pace = Pace(time.monotonic())
        self.tail = Tail(limits.log_bytes)
        self._take, self._tell = take, beat
        self._lines = Lines(line_bytes=limits.line_bytes, output_bytes=limits.output_bytes)
        self._beat_at = self._look_at = 0.0

    def started(self) -> None:
        """The model runs from now on."""
        self.pace.start = time.monotonic()

    def is_over(self) -> bool:
        """Whether its time is up."""
        return time.monotonic() >= self.pace.start + self.limits.seconds

    def wrote(self, data: bytes) -> None:
        """Standard output went on. Raises InvalidOutput and OutputTooLargeError."""
        self._answers(self._lines.feed(data))

    def closed(self) -> None:
        """Standard output ended. Raises InvalidOutput."""
        self._answers(self._lines.end())

    def look(self) -> None:
        """Measure and tell that we live, each when it is time. Raises what `beat` does."""
        now = time.monotonic()
        if now >= self._look_at:
            self.pace.sampled(self.sample(), now)
            self._look_at = now + LOOK_SECONDS
        if now >= self._beat_at:
            self._beat()

    def patiently(self, call: Callable[[], T]) -> T:
        """The result of a call that may take long, during which the lease is kept."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(call)
            while not wait([future], BEAT_SECONDS).done:
                self._beat()
            return future.result()

    def timeout(self) -> End:
        return End(
            Outcome.TIMEOUT,
            "The model had not finished when its time was over.",
            limit=f"{self.limits.seconds:g} seconds",
            measured=f"{self._lines.count} answers by then",
        )

    def too_large(self) -> End:
        return End(
            Outcome.OUTPUT_TOO_LARGE,
            "The model wrote more to standard output than its answers may take.",
            limit=in_words(self.limits.output_bytes),
            measured=f"more, after {self._lines.count} lines",
        )

    def oom(self) -> End:
        return End(
            Outcome.OOM,
            "The model needed more memory than it may use.",
            limit=in_words(self.limits.memory_bytes),
            measured=f"more, after {self._lines.count} answers",
        )

    def failed(self, code: int) -> End:
        """Our harness says in its last line why it gave up; what others say is in the log."""
        last = self.tail.text().strip().rpartition("\n")[2]
        if self.trusted and code == 1 and last:
            return End(Outcome.MODEL_ERROR, last[:500])
        return End(Outcome.MODEL_ERROR, f"{_meaning(code)} Its log may say why.")

    def ending(self, end: End) -> Ending:
        """The end of the run with what it used."""
        usage, warning = self.pace.usage(time.monotonic(), trusted=self.trusted)
        return Ending(
            outcome=end.outcome,
            usage=usage,
            sentence=end.sentence,
            limit=end.limit,
            measured=end.measured,
            log=self.tail.text(),
            warnings=tuple(text for text in (end.warning, warning) if text),
        )

    def _answers(self, lines: Iterator[bytes]) -> None:
        count = 0
        for line in lines:
            self._take(line)
            count += 1
        if count:
            self.pace.answered(count, time.monotonic())

    def _beat(self) -> None:
        self._beat_at = time.monotonic() + BEAT_SECONDS
        try:
            self._tell()
        except Exception as error:
            self.beat_error = error
            raise


def _meaning(code: int) -> str:
    """What an exit code says, in words."""
    if code in (126, 127):
        return f"The model's command cannot be started (exit code {code})."
    with suppress(ValueError):
        name = signal.Signals(code - 128).name
        return f"The model was ended by {name} from inside the sandbox (exit code {code})."
    return f"The model ended with exit code {code}."


def in_words(size: int) -> str:
    """Bytes as people say them: `in_words(2**30)` is "1 GiB"."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"
