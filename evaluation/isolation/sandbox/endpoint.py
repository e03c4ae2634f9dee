"""Run models on remote servers, through the adapters for remote models.

Their speed also depends on the network, so their throughput is stored with this runner's name.
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

from evaluation.contract import MIN_LOGPROB, BeatCallback, Ending, LineCallback, Outcome, Runnable
from evaluation.isolation.sandbox.limits import CALL_LIMITS, CallLimits, LimitExceeded, Limits
from evaluation.isolation.sandbox.meter import Meter
from evaluation.isolation.sandbox.monitor import CHECK_INTERVAL_SECONDS, Monitor
from tasks.targets.endpoints.base import (
    UNANSWERED_REASONS,
    Endpoint,
    EndpointError,
    Prediction,
    Reason,
    build_rubbish_error,
)

BUSY_SENTENCE = "The endpoint asked to come later until the time was over."
MAX_USELESS_ANSWERS = 20  # if so many first answers are all unusable, a run ends
OUTCOME_BY_REASON = {
    "slow": Outcome.TIMEOUT,
    "rubbish": Outcome.INVALID_OUTPUT,
    "down": Outcome.AWAY,
    "busy": Outcome.AWAY,
}


class EndpointRunner:
    """A runner that sends examples to a remote endpoint in batches.

    Its failures are described to the endpoint's owner, who has to fix them.
    """

    name = "endpoint"

    def __init__(
        self, endpoint: Endpoint, call_limits: CallLimits = CALL_LIMITS, meter: Meter | None = None
    ) -> None:
        self._endpoint, self._call_limits, self._meter = endpoint, call_limits, meter or Meter()

    def run(
        self,
        model: Runnable,
        inputs: Path,
        limits: Limits,
        *,
        take: LineCallback,
        beat: BeatCallback,
    ) -> Ending:
        """Run a model; see `Runner.run`. Waits for open calls only if they cost money."""
        monitor = Monitor(limits, take, beat, is_trusted=False)
        calls, meter = _OpenCalls(self._endpoint, self._call_limits, self._meter), self._meter

        def watch_run() -> Ending:
            try:
                meter.pay_for_tokens()
                with inputs.open("rb") as lines:
                    return calls.watch(monitor, lines)
            except EndpointError as error:
                return _build_failure_ending(error, has_answered=calls.answered_count > 0)
            finally:
                calls.stop()

        ending = monitor.monitor_run(watch_run)
        # The time was spent waiting for a server that asked to retry later.
        if ending.outcome == Outcome.TIMEOUT and calls.must_wait:
            ending = replace(
                ending, outcome=Outcome.AWAY, sentence=f"{BUSY_SENTENCE} {ending.sentence}"
            )
        if meter.is_paid:
            monitor.call_patiently(calls.finish)
            with suppress(LimitExceeded):
                meter.pay_for_tokens()
        return replace(ending, usage=meter.add_to_usage(ending.usage))


def _build_failure_ending(error: EndpointError, *, has_answered: bool) -> Ending:
    """Return the ending of a run after an endpoint's failure.

    A server that answered no example in time counts as away. If it answered others, it counts as a
    slow model.
    """
    outcome = OUTCOME_BY_REASON.get(error.reason, Outcome.MODEL_ERROR)
    # Waiting does not help if the cause is permanent, such as a used up budget.
    if error.is_permanent:
        outcome = Outcome.MODEL_ERROR
    if outcome == Outcome.AWAY or (outcome == Outcome.TIMEOUT and not has_answered):
        return Ending(Outcome.AWAY, sentence=f"The endpoint is away. {error}")
    return Ending(outcome, sentence=f"The endpoint gave no usable answer. {error}")


@dataclass(frozen=True)
class _CallResult:
    """The result of one call: lines of answers, log messages, and number of unanswered examples.

    named_count: the number of answers that were extracted from a sentence.
    """

    answers: bytes
    notes: bytes
    unanswered_count: int
    named_count: int


class _OpenCalls:
    """The calls to an endpoint that have not ended yet."""

    def __init__(self, endpoint: Endpoint, limits: CallLimits, meter: Meter) -> None:
        self._open: set[Future[_CallResult]] = set()
        self._endpoint, self._limits, self._meter = endpoint, limits, meter
        self._pool = ThreadPoolExecutor(limits.concurrent_calls)
        self._stopped = threading.Event()
        self.answered_count = 0  # examples
        self.must_wait = False  # the server's last response was to retry later
        self.last_note = ""  # about a failure, in the server's words
        self._resume_at = 0.0  # no call starts before: the server asked to retry later

    def watch(self, monitor: Monitor, lines: Iterator[bytes]) -> Ending:
        """Send all lines to the endpoint and collect the answers.

        Raises EndpointError. Propagates exceptions of the monitor.
        """
        unanswered_count = named_count = 0
        while True:
            while len(self._open) < self._limits.concurrent_calls and (
                batch := list(islice(lines, self._limits.examples))
            ):
                self._open.add(self._pool.submit(self._answer_batch, batch))
            if not self._open:
                if unanswered_count and not self.answered_count:
                    raise self._build_no_answer_error(
                        f"None of {unanswered_count} examples was answered."
                    )
                if named_count:
                    monitor.tail.add(describe_named_answers(named_count).encode())
                return Ending(Outcome.OK)
            monitor.check_limits()
            for call in self._iterate_ended_calls():
                monitor.tail.add(call.notes)
                monitor.process_output(call.answers)
                self.answered_count += call.answers.count(b"\n") - call.unanswered_count
                unanswered_count += call.unanswered_count
                named_count += call.named_count
            self._meter.pay_for_tokens()
            if unanswered_count >= MAX_USELESS_ANSWERS and not self.answered_count:
                raise self._build_no_answer_error(
                    f"None of the first {unanswered_count} examples was answered."
                )

    def _build_no_answer_error(self, sentence: str) -> EndpointError:
        """Return the error for a model that answered nothing, with the server's last message."""
        return build_rubbish_error(f"{sentence} {self.last_note}")

    def _iterate_ended_calls(self) -> Iterator[_CallResult]:
        """Wait a moment and yield the results of calls that ended. Raises EndpointError."""
        ended_calls, self._open = wait(self._open, CHECK_INTERVAL_SECONDS, FIRST_COMPLETED)
        for call in ended_calls:
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
        answer_lines, unanswered_count, named_count = [], 0, 0
        for example, answer in zip(examples, predictions, strict=True):
            if isinstance(answer, Prediction):
                named_count += answer.is_named
            else:
                unanswered_count += 1
            answer_lines.append(format_answer_line(example["id"], answer))
        return _CallResult(
            b"".join(answer_lines), _join_lines(notes), unanswered_count, named_count
        )

    def _predict(
        self, inputs: Sequence[Mapping[str, Any]], notes: list[str]
    ) -> list[Prediction | Reason]:
        """Return for each example a prediction, or the reason why it has none.

        Retries a call that failed. If the model cannot answer a batch, each of its examples is
        asked about alone. Raises EndpointError.
        """
        failure_count = doubling_count = 0
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
                    self._meter.record_answer(error.usage)
                if error.reason in UNANSWERED_REASONS:
                    if len(inputs) == 1:
                        return [error.reason]
                    # Send each alone, to find out which of them the model cannot answer.
                    answers: list[Prediction | Reason] = []
                    for example in inputs:
                        answers += self._predict([example], notes)
                    return answers
                doubling_count = min(doubling_count + 1, self._limits.doublings)
                # “Retry later” is not an attempt; otherwise a busy hour would end a long run.
                failure_count += error.reason != "busy"
                if (
                    error.is_permanent
                    or error.reason == "rubbish"
                    or failure_count == self._limits.attempts
                ):
                    raise
                seconds = min(
                    error.retry_after or 2.0**doubling_count, self._limits.longest_wait_seconds
                )
                if error.retry_after:  # applies to all calls with this key
                    self._resume_at = max(self._resume_at, time.monotonic() + seconds)
                if self._stopped.wait(seconds):
                    raise

    def _call(self, inputs: Sequence[Mapping[str, Any]]) -> Sequence[Prediction]:
        """Return the predictions of one call, after waiting until the server accepts calls.

        Raises EndpointError.
        """
        while (seconds := self._resume_at - time.monotonic()) > 0:
            if self._stopped.wait(seconds):
                raise EndpointError("The run was ended.", reason="busy", is_permanent=True)
        predictions = self._endpoint.predict(inputs, deadline_seconds=self._limits.seconds)
        for prediction in predictions:
            if len(inputs) == 1:
                self._meter.record_answer(prediction.usage, prediction.seconds)
            else:  # the time of a batch says nothing about one example
                self._meter.record_answer(prediction.usage)
        return predictions


def describe_named_answers(count: int) -> str:
    """Return the log message about answers that were extracted from a sentence."""
    return f"{count} answers were sentences that name one label; that label counts.\n"


def format_answer_line(example_id: str, answer: Prediction | Reason) -> bytes:
    """Return the output line for an answer.

    Without a prediction the output is null, which counts as wrong.
    """
    line: dict[str, Any] = {"id": example_id, "output": None}
    if isinstance(answer, str):
        line["unanswered"] = answer
    else:
        line["output"] = dict(answer.output)
        line["prob"] = answer.prob and dict(answer.prob)
        if answer.logprob is not None:
            line["logprob"] = max(answer.logprob, MIN_LOGPROB)
        usage = answer.usage
        if usage and (usage.tokens_in or usage.tokens_out):  # 0 and 0: not reported
            line["tokens"] = [usage.tokens_in, usage.tokens_out]
    return json.dumps(line).encode() + b"\n"


def _join_lines(lines: Sequence[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()
