"""Run a metric's file over answers: twice, in two containers and two orders.

It knows no database. What comes out of a container is a stranger's until it was checked here.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from core.text.words import gettext_noop
from evaluation.contract import BASE_IMAGE, MIB, Beat, InvalidOutput, NotNow, Outcome, Runnable
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.sandbox.monitor import Runner

MOST_EXAMPLES = 100_000
"""Larger sets have no custom metrics: all answers are in memory at once."""
LIMITS = Limits(
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
"""For few examples; 500 more take another second."""
FAILURES: Mapping[str, str] = {
    "error": gettext_noop("It raised an error."),
    "timeout": gettext_noop("It was not done when its time was over."),
    "memory": gettext_noop("It needed more memory than it may use."),
    "output": gettext_noop("It wrote something itself, or too much. Return numbers, never print."),
    "length": gettext_noop("It ended before it had scored every example."),
    "impure": gettext_noop("Run again in another order it gave other numbers."),
    "no_examples": gettext_noop("There is no example with a right answer to try it on."),
    "too_many": gettext_noop("The set has too many examples for a metric of one's own."),
    "gone": gettext_noop("The stored answers are gone or damaged."),
}
"""Why there are no numbers, by code."""
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

    reason: a key of FAILURES. line: the line of the metric's file, if known. detail: the message
    of the metric's own exception.
    """

    def __init__(self, reason: str, line: int | None = None, detail: str = "") -> None:
        super().__init__(FAILURES[reason])
        self.reason, self.line, self.detail = reason, line, detail


class MetricScores(NamedTuple):
    """The number for each answer, from 0 to 1, and the seconds that the first run took."""

    values: list[float]
    seconds: float


MakeRunner = Callable[[Runnable], Runner]


def score_answers(
    source: str, rows: Sequence[AnswerToScore], folder: Path, make_runner: MakeRunner, beat: Beat
) -> MetricScores:
    """Run a metric's file on the answers and return its numbers. Raises Failed and NotNow.

    1. Write the file and the answers into the folder.
    2. Run the file in one container.
    3. Run it in another container, with the answers in another order. Both runs must give the same
       numbers: a metric may depend neither on the order nor on chance.

    folder: for the files of the run; the caller removes it.
    """
    if not rows:
        raise MetricFailed("no_examples")
    if len(rows) > MOST_EXAMPLES:
        raise MetricFailed("too_many")
    # The container sees this folder alone, and only reads it.
    home = folder / "metric"
    home.mkdir()
    (home / "metric.py").write_text(source, encoding="utf-8")
    model = Runnable(folder=home, image=BASE_IMAGE, adapter="metric")
    lines = []
    for row in rows:
        lines.append(orjson.dumps(row._asdict()) + b"\n")
    order = list(range(len(lines)))
    began = time.monotonic()
    values = _run_once(model, lines, folder, make_runner(model), beat)
    seconds = time.monotonic() - began
    random.Random(len(lines)).shuffle(order)
    if len(order) > 1 and order == sorted(order):  # chance may leave everything in its place
        order.reverse()
    shuffled_lines = [lines[place] for place in order]
    shuffled_values = _run_once(model, shuffled_lines, folder, make_runner(model), beat)
    if shuffled_values != [values[place] for place in order]:
        raise MetricFailed("impure")
    return MetricScores(values, seconds)


def _run_once(
    model: Runnable, lines: Sequence[bytes], folder: Path, runner: Runner, beat: Beat
) -> list[float]:
    inputs = folder / "examples.jsonl"
    inputs.write_bytes(b"".join(lines))
    output = MetricOutput(len(lines))
    # More time and output for more answers.
    limits = replace(
        LIMITS,
        seconds=LIMITS.seconds + len(lines) / 500,
        output_bytes=LIMITS.output_bytes + 100 * len(lines),
    )
    ending = runner.run(model, inputs, limits, take=output.take, beat=beat)
    # The platform's own failure says nothing about the file.
    if ending.outcome in (Outcome.INFRASTRUCTURE, Outcome.REJECTED):
        raise NotNow(ending.sentence)
    # An error that the file raised ends the model, too, but says more than how it ended.
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
    error: tuple[int | None, str] | None = None  # the line of the file, and what it says

    def take(self, line: bytes) -> None:
        """Check and store one line. Raises InvalidOutput unless the harness may have written it."""
        try:
            # A hostile file may write anything, so only the two shapes of the harness count.
            match orjson.loads(line):
                # NaN fails the comparisons, too.
                case {"value": int() | float() as value} if 0 <= value <= 1 and not self._is_over:
                    self.values.append(float(value))
                    return
                case {"error": str() as error, "line": (int() | None) as at} if not self._is_over:
                    self.error = at, error[:500]
                    return
        except orjson.JSONDecodeError:
            pass
        raise InvalidOutput("It is not what a metric gives.")

    @property
    def _is_over(self) -> bool:
        return self.error is not None or len(self.values) == self.size
