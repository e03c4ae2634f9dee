"""Run a metric's file on answers: twice, in two containers and two orders.

Uses no database. The output of a container is not trusted until it has been checked here.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from core.text.words import gettext_noop
from evaluation.contract import (
    BASE_IMAGE,
    MIB,
    BeatCallback,
    InvalidOutput,
    NotNow,
    Outcome,
    Runnable,
)
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.monitor import Runner

MAX_EXAMPLES = 100_000
"""The maximum size of a set with custom metrics, because all answers are in memory at once."""
METRIC_LIMITS = Limits(
    seconds=60,
    memory_bytes=512 * MIB,
    cpus=1,
    processes=16,
    scratch_bytes=16 * MIB,
    scratch_files=256,
    shared_bytes=8 * MIB,
    output_bytes=MIB,
    line_bytes=2000,
    log_bytes=8 * 1024,
)
"""The limits for few examples. Every 500 examples add a second."""
FAILURE_MESSAGES: Mapping[str, str] = {
    "error": gettext_noop("The metric raised an error."),
    "timeout": gettext_noop("The metric ran out of time."),
    "memory": gettext_noop("The metric ran out of memory."),
    "output": gettext_noop(
        "The metric printed something, or returned too much. Return numbers and don't print."
    ),
    "length": gettext_noop("The metric ended before it scored every example."),
    "impure": gettext_noop(
        "The metric gave different numbers when we ran it again in another order."
    ),
    "no_examples": gettext_noop("The task has no example with a right answer to test it on."),
    "too_many": gettext_noop("The test set has too many examples for a custom metric."),
    "gone": gettext_noop("The stored answers are missing or damaged."),
}
"""The reasons why there are no numbers, by code."""
FAILURE_BY_OUTCOME = {
    Outcome.TIMEOUT: "timeout",
    Outcome.OOM: "memory",
    Outcome.OUTPUT_TOO_LARGE: "output",
    Outcome.INVALID_OUTPUT: "output",
    Outcome.MODEL_ERROR: "length",
}


class AnswerToScore(NamedTuple):
    """An answer to score.

    gold: all correct answers, the best first. answer: the model's answer. example: the inputs
    that the model read.
    """

    gold: Sequence[Any]
    answer: Any
    example: Mapping[str, Any]


class MetricFailed(Exception):
    """Raised when a metric gave no numbers.

    reason: a key of FAILURE_MESSAGES. line: the line of the metric's file, if known. detail: the
    message of the metric's own exception.
    """

    def __init__(self, reason: str, line: int | None = None, detail: str = "") -> None:
        super().__init__(FAILURE_MESSAGES[reason])
        self.reason, self.line, self.detail = reason, line, detail


class MetricScores(NamedTuple):
    """The number for each answer, from 0 to 1, and the seconds that the first run took."""

    values: list[float]
    seconds: float


RunnerFactory = Callable[[Runnable], Runner]


def score_answers(
    source: str,
    rows: Sequence[AnswerToScore],
    folder: Path,
    make_runner: RunnerFactory,
    beat: BeatCallback,
) -> MetricScores:
    """Run a metric's file on the answers and return its numbers. Raises MetricFailed and NotNow.

    1. Write the file and the answers into the folder.
    2. Run the file in one container.
    3. Run it in another container, with the answers in another order. Both runs must give the same
       numbers: a metric may depend neither on the order nor on chance.

    folder: for the files of the run; the caller removes it.
    """
    if not rows:
        raise MetricFailed("no_examples")
    if len(rows) > MAX_EXAMPLES:
        raise MetricFailed("too_many")
    # The container sees only this folder, read-only.
    metric_folder = folder / "metric"
    metric_folder.mkdir()
    (metric_folder / "metric.py").write_text(source, encoding="utf-8")
    model = Runnable(folder=metric_folder, image=BASE_IMAGE, adapter="metric")
    lines = []
    for row in rows:
        lines.append(orjson.dumps(row._asdict()) + b"\n")
    positions = list(range(len(lines)))
    started_at = time.monotonic()
    values = _run_once(model, lines, folder, make_runner(model), beat)
    seconds = time.monotonic() - started_at
    random.Random(len(lines)).shuffle(positions)
    if len(positions) > 1 and positions == sorted(
        positions
    ):  # a shuffle may leave everything in place
        positions.reverse()
    shuffled_lines = [lines[position] for position in positions]
    shuffled_values = _run_once(model, shuffled_lines, folder, make_runner(model), beat)
    if shuffled_values != [values[position] for position in positions]:
        raise MetricFailed("impure")
    return MetricScores(values, seconds)


def _run_once(
    model: Runnable, lines: Sequence[bytes], folder: Path, runner: Runner, beat: BeatCallback
) -> list[float]:
    inputs = folder / "examples.jsonl"
    inputs.write_bytes(b"".join(lines))
    output = MetricOutput(len(lines))
    # More time and output for more answers.
    limits = replace(
        METRIC_LIMITS,
        seconds=METRIC_LIMITS.seconds + len(lines) / 500,
        output_bytes=METRIC_LIMITS.output_bytes + 100 * len(lines),
    )
    ending = runner.run(model, inputs, limits, take=output.take, beat=beat)
    # A failure of the platform says nothing about the file.
    if ending.outcome in (Outcome.INFRASTRUCTURE, Outcome.REJECTED):
        raise NotNow(ending.sentence)
    # An error raised by the file also ends the run, but is more informative.
    if output.error:
        raise MetricFailed("error", *output.error)
    if ending.outcome != Outcome.OK:
        raise MetricFailed(FAILURE_BY_OUTCOME[ending.outcome])
    if len(output.values) != len(lines):
        raise MetricFailed("length")
    return output.values


@dataclass
class MetricOutput:
    """The output of a metric's container, checked line by line."""

    size: int  # of the set
    values: list[float] = field(default_factory=list)
    error: tuple[int | None, str] | None = None  # the line of the file, and the message

    def take(self, line: bytes) -> None:
        """Check and store one line. Raises InvalidOutput unless the harness may have written it."""
        try:
            # A hostile file may write anything, so only the harness's two formats count.
            match orjson.loads(line):
                # NaN also fails these comparisons.
                case {"value": int() | float() as value} if 0 <= value <= 1 and not self._is_over:
                    self.values.append(float(value))
                    return
                case {"error": str() as error, "line": (int() | None) as line_number} if (
                    not self._is_over
                ):
                    self.error = line_number, error[:500]
                    return
        except orjson.JSONDecodeError:
            pass
        raise InvalidOutput("It is not what a metric gives.")

    @property
    def _is_over(self) -> bool:
        return self.error is not None or len(self.values) == self.size
