"""The runner of models that run elsewhere, asked through the adapters to remote models.

How fast it answers depends on the network too, so its throughput carries this runner's name.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from evaluation.contract import LEAST_LOGPROB, Beat, Ending, Outcome, Runnable, Take
from evaluation.isolation.sandbox.limits import CALLS, CallLimits, LimitExceeded, Limits
from evaluation.isolation.sandbox.meter import Meter
from evaluation.isolation.sandbox.monitor import LOOK_SECONDS, Monitor
from tasks.targets.endpoints.base import (
    UNANSWERED_REASONS,
    Endpoint,
    EndpointError,
    Prediction,
    Reason,
    rubbish,
)

BUSY_SENTENCE = "The endpoint asked to come later until the time was over."
MAX_USELESS_ANSWERS = 20  # answers of which none could be used: more would cost and teach nothing
OUTCOME_OF_REASON = {
    "slow": Outcome.TIMEOUT,
    "rubbish": Outcome.INVALID_OUTPUT,
    "down": Outcome.AWAY,
    "busy": Outcome.AWAY,
}


class EndpointRunner:
    """A runner that sends examples to a remote endpoint in batches.

    Its owner is to fix its failures.
    """

    name = "endpoint"

    def __init__(
        self, endpoint: Endpoint, calls: CallLimits = CALLS, meter: Meter | None = None
    ) -> None:
        self._endpoint, self._calls, self._meter = endpoint, calls, meter or Meter()

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """Run a model as `Runner.run` does. Waits for open calls only if they cost money."""
        monitor = Monitor(limits, take, beat, trusted=False)
        calls, meter = _OpenCalls(self._endpoint, self._calls, self._meter), self._meter

        def watched() -> Ending:
            try:
                meter.settle()
                with inputs.open("rb") as lines:
                    return calls.watch(monitor, lines)
            except EndpointError as error:
                return _ending_after(error, has_answered=calls.answered > 0)
            finally:
                calls.stop()

        ending = monitor.ending(watched)
        # The time went into waiting for a server that asked to come later: not the model's fault.
        if ending.outcome == Outcome.TIMEOUT and calls.must_wait:
            ending = replace(
                ending, outcome=Outcome.AWAY, sentence=f"{BUSY_SENTENCE} {ending.sentence}"
            )
        if meter.is_paid:
            monitor.patiently(calls.finish)
            with suppress(LimitExceeded):
                meter.settle()
        return replace(ending, usage=meter.usage(ending.usage))


def _ending_after(error: EndpointError, *, has_answered: bool) -> Ending:
    """Return the ending of a run after an endpoint's failure.

    A server that answered no example in time counts as away; after other answers it is a slow
    model.
    """
    outcome = OUTCOME_OF_REASON.get(error.reason, Outcome.MODEL_ERROR)
    # Waiting does not help what is permanent, such as a budget of ours that is used up.
    if error.permanent:
        outcome = Outcome.MODEL_ERROR
    if outcome == Outcome.AWAY or (outcome == Outcome.TIMEOUT and not has_answered):
        return Ending(Outcome.AWAY, sentence=f"The endpoint is away. {error}")
    return Ending(outcome, sentence=f"The endpoint gave no usable answer. {error}")


@dataclass(frozen=True)
class _CallResult:
    """The result of one call: lines of answers, log messages, and number of unanswered examples.

    named: the number of answers that were extracted from a sentence.
    """

    answers: bytes
    notes: bytes
    unanswered: int
    named: int


class _OpenCalls:
    """The calls to an endpoint that have not ended yet."""

    def __init__(self, endpoint: Endpoint, limits: CallLimits, meter: Meter) -> None:
        self._open: set[Future[_CallResult]] = set()
        self._endpoint, self._limits, self._meter = endpoint, limits, meter
        self._pool = ThreadPoolExecutor(limits.at_once)
        self._stopped = threading.Event()
        self.answered = 0  # examples
        self.must_wait = False  # the server's last word was to come later
        self.last_note = ""  # of a failure, in the server's words
        self._resume_at = 0.0  # no call begins before: the server asked all to come later

    def watch(self, monitor: Monitor, lines: Iterator[bytes]) -> Ending:
        """Send all lines to the endpoint and collect the answers.

        Raises EndpointError. Propagates exceptions of the monitor.
        """
        unanswered_count = named_count = 0
        while True:
            while len(self._open) < self._limits.at_once and (
                batch := list(islice(lines, self._limits.examples))
            ):
                self._open.add(self._pool.submit(self._answer_batch, batch))
            if not self._open:
                if unanswered_count and not self.answered:
                    raise self._no_answer_error(
                        f"None of {unanswered_count} examples was answered."
                    )
                if named_count:
                    monitor.tail.add(named_note(named_count).encode())
                return Ending(Outcome.OK)
            monitor.look()
            for call in self._ended_calls():
                monitor.tail.add(call.notes)
                monitor.wrote(call.answers)
                self.answered += call.answers.count(b"\n") - call.unanswered
                unanswered_count += call.unanswered
                named_count += call.named
            self._meter.settle()
            if unanswered_count >= MAX_USELESS_ANSWERS and not self.answered:
                raise self._no_answer_error(
                    f"None of the first {unanswered_count} examples was answered."
                )

    def _no_answer_error(self, sentence: str) -> EndpointError:
        """Return the error for a model that answered nothing, with the server's last message."""
        return rubbish(f"{sentence} {self.last_note}")

    def _ended_calls(self) -> Iterator[_CallResult]:
        """Wait LOOK_SECONDS and yield the results of calls that ended. Raises EndpointError."""
        done, self._open = wait(self._open, LOOK_SECONDS, FIRST_COMPLETED)
        for call in done:
            yield call.result()

    def stop(self) -> None:
        """Start no further calls, and return without waiting for open ones."""
        self._stopped.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def finish(self) -> None:
        """Wait for calls that have started, because they are paid for."""
        wait([call for call in self._open if not call.cancelled()], self._limits.seconds)

    def _answer_batch(self, lines: Sequence[bytes]) -> _CallResult:
        """Return the result of asking about a batch of lines. Runs in a thread of the pool."""
        examples = [json.loads(line) for line in lines]
        notes: list[str] = []
        predictions = self._predict([example["inputs"] for example in examples], notes)
        lines_of_answers, unanswered_count, named_count = [], 0, 0
        for example, answer in zip(examples, predictions, strict=True):
            if isinstance(answer, Prediction):
                named_count += answer.is_named
            else:
                unanswered_count += 1
            lines_of_answers.append(answer_line(example["id"], answer))
        return _CallResult(
            b"".join(lines_of_answers), _join_lines(notes), unanswered_count, named_count
        )

    def _predict(
        self, inputs: Sequence[Mapping[str, Any]], notes: list[str]
    ) -> list[Prediction | Reason]:
        """Return for each example a prediction, or the reason why it has none.

        Raises EndpointError.
        """
        failures = tries = 0
        while True:
            try:
                predictions: list[Prediction | Reason] = list(self._call(inputs))
                self.must_wait = False
                return predictions
            except EndpointError as error:
                self.must_wait = error.reason == "busy"
                notes.append(str(error))
                self.last_note = str(error)
                if error.usage is not None:
                    self._meter.note(error.usage)
                if error.reason in UNANSWERED_REASONS:
                    if len(inputs) == 1:
                        return [error.reason]
                    # Which of them the model cannot answer shows only when each is asked alone.
                    answers: list[Prediction | Reason] = []
                    for example in inputs:
                        answers += self._predict([example], notes)
                    return answers
                tries = min(tries + 1, self._limits.doublings)
                # "Come later" costs no attempt, or a busy hour would end a long run.
                failures += error.reason != "busy"
                if (
                    error.permanent
                    or error.reason == "rubbish"
                    or failures == self._limits.attempts
                ):
                    raise
                seconds = min(error.retry_after or 2.0**tries, self._limits.longest_wait_seconds)
                if error.retry_after:  # the server means all calls with this key
                    self._resume_at = max(self._resume_at, time.monotonic() + seconds)
                if self._stopped.wait(seconds):
                    raise

    def _call(self, inputs: Sequence[Mapping[str, Any]]) -> Sequence[Prediction]:
        """Return the predictions of one call, after waiting until the server accepts calls.

        Raises EndpointError.
        """
        while (seconds := self._resume_at - time.monotonic()) > 0:
            if self._stopped.wait(seconds):
                raise EndpointError("The run was ended.", reason="busy", permanent=True)
        predictions = self._endpoint.predict(inputs, deadline_seconds=self._limits.seconds)
        for prediction in predictions:
            if len(inputs) == 1:
                self._meter.note(prediction.usage, prediction.seconds)
            else:  # the time of a batch says nothing about one example
                self._meter.note(prediction.usage)
        return predictions


def named_note(count: int) -> str:
    """Return the log message about answers that were extracted from a sentence."""
    return f"{count} answers were sentences that name one label; that label counts.\n"


def answer_line(id: str, answer: Prediction | Reason) -> bytes:
    """Return the line of an answer.

    Without a prediction the output is null, which counts as wrong.
    """
    line: dict[str, Any] = {"id": id, "output": None}
    if isinstance(answer, str):
        line["unanswered"] = answer
    else:
        line["output"] = dict(answer.output)
        line["prob"] = answer.prob and dict(answer.prob)
        if answer.logprob is not None:
            line["logprob"] = max(answer.logprob, LEAST_LOGPROB)
        usage = answer.usage
        if usage and (usage.tokens_in or usage.tokens_out):  # 0 and 0: the server reports none
            line["tokens"] = [usage.tokens_in, usage.tokens_out]
    return json.dumps(line).encode() + b"\n"


def _join_lines(lines: Sequence[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()
