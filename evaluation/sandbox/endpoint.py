"""Asks a model that runs elsewhere, through the adapters to remote models.

How fast it answers depends on the network too, so its throughput carries this runner's name.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any

from evaluation.contract import Beat, Ending, Outcome, Runnable, Take
from evaluation.sandbox.limits import CALLS, Calls, Limits
from evaluation.sandbox.monitor import LOOK_SECONDS, Monitor
from tasks.targets.endpoints.base import Endpoint, EndpointError, Prediction

ENDED_BY = {"slow": Outcome.TIMEOUT, "rubbish": Outcome.INVALID_OUTPUT}


class EndpointRunner:
    """A remote endpoint, asked in batches. Its failures are for its owner to mend."""

    name = "endpoint"

    def __init__(self, endpoint: Endpoint, calls: Calls = CALLS) -> None:
        self._endpoint, self._calls = endpoint, calls

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """See `Runner`. Calls that are still open end by themselves."""
        monitor = Monitor(limits, take, beat, trusted=False)
        calls = _OpenCalls(self._endpoint, self._calls)

        def watched() -> Ending:
            try:
                with inputs.open("rb") as lines:
                    return calls.watch(monitor, lines)
            except EndpointError as error:
                outcome = ENDED_BY.get(error.reason, Outcome.MODEL_ERROR)
                return Ending(outcome, sentence=f"The endpoint gave no usable answer. {error}")
            finally:
                calls.stop()

        return monitor.ending(watched)


class _OpenCalls:
    """Calls on their way."""

    def __init__(self, endpoint: Endpoint, how: Calls) -> None:
        self._open: set[Future[tuple[bytes, bytes]]] = set()
        self._endpoint, self._how = endpoint, how
        self._pool = ThreadPoolExecutor(how.at_once)
        self._stopped = threading.Event()

    def watch(self, monitor: Monitor, lines: Iterator[bytes]) -> Ending:
        """Have all lines answered. Raises EndpointError, and what the monitor does."""
        while True:
            while len(self._open) < self._how.at_once and (
                batch := list(islice(lines, self._how.examples))
            ):
                self._open.add(self._pool.submit(self._answered, batch))
            if not self._open:
                return Ending(Outcome.OK)
            monitor.look()
            for answers, notes in self._ended():
                monitor.tail.add(notes)
                monitor.wrote(answers)

    def _ended(self) -> Iterator[tuple[bytes, bytes]]:
        """Lines of answers, and notes for the log, of calls that ended within a moment.

        Raises EndpointError.
        """
        done, self._open = wait(self._open, LOOK_SECONDS, FIRST_COMPLETED)
        for call in done:
            yield call.result()

    def stop(self) -> None:
        """Ask no more and wait for nobody."""
        self._stopped.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answered(self, lines: Sequence[bytes]) -> tuple[bytes, bytes]:
        examples = [json.loads(line) for line in lines]
        notes: list[str] = []
        predictions = self._predictions([example["inputs"] for example in examples], notes)
        answers = [
            json.dumps(
                {
                    "id": example["id"],
                    "output": dict(said.output),
                    "prob": said.prob and dict(said.prob),
                }
            )
            for example, said in zip(examples, predictions, strict=True)
            if said
        ]
        return _text(answers), _text(notes)

    def _predictions(
        self, inputs: Sequence[Mapping[str, Any]], notes: list[str]
    ) -> list[Prediction | None]:
        """One for each example, None where that very one was declined. Raises EndpointError."""
        failures = tries = 0
        while True:
            try:
                return [*self._endpoint.predict(inputs, deadline_seconds=self._how.seconds)]
            except EndpointError as error:
                notes.append(str(error))
                if error.reason == "refused" and len(inputs) > 1:
                    return [one for each in inputs for one in self._predictions([each], notes)]
                if error.reason == "refused":
                    return [None]
                tries = min(tries + 1, self._how.doublings)
                failures += error.reason != "busy"
                if error.permanent or error.reason == "rubbish" or failures == self._how.attempts:
                    raise
                seconds = min(error.retry_after or 2.0**tries, self._how.longest_wait_seconds)
                if self._stopped.wait(seconds):
                    raise


def _text(lines: Sequence[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()
