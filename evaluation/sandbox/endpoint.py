"""Asks a model that runs elsewhere, through the adapters to remote models.

How fast it answers depends on the network too, so its throughput is told under this runner's name.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import Any

from evaluation.contract import Beat, Ending, InvalidOutput, Limits, Outcome, Runnable, Take
from evaluation.sandbox.monitor import LOOK_SECONDS, End, Watched
from evaluation.sandbox.output import OutputTooLargeError
from tasks.targets.endpoints.base import Endpoint, EndpointError, Prediction

EXAMPLES = 16  # in one call
IN_FLIGHT = 4  # calls at once
CALL_SECONDS = 60.0
ATTEMPTS = 5  # of a call that fails; one that is told to come later is free
LONGEST_WAIT_SECONDS = 60.0
MOST_DOUBLINGS = 6  # of the wait, which begins with two seconds
ENDED_BY = {"slow": Outcome.TIMEOUT, "rubbish": Outcome.INVALID_OUTPUT}


class EndpointRunner:
    """A remote endpoint, asked in batches. What it fails at is its owner's to mend."""

    name = "endpoint"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """See `evaluation.contract.Runner`. Calls that are still open end by themselves."""
        run = Watched(limits, take, beat, trusted=False)
        calls = _Calls(self._endpoint)
        try:
            with inputs.open("rb") as lines:
                end = _watch(run, calls, lines)
        except EndpointError as error:
            end = End(
                ENDED_BY.get(error.reason, Outcome.MODEL_ERROR),
                f"The endpoint gave no usable answer. {error}",
            )
        except InvalidOutput as problem:
            end = End(Outcome.INVALID_OUTPUT, str(problem))
        except OutputTooLargeError:
            end = run.too_large()
        finally:
            calls.stop()
        return run.ending(end)


def _watch(run: Watched, calls: "_Calls", lines: Iterator[bytes]) -> End:
    """See to it that all lines are answered. Raises EndpointError, and what `beat` does."""
    while True:
        while len(calls.open) < IN_FLIGHT and (batch := list(islice(lines, EXAMPLES))):
            calls.ask(batch)
        if not calls.open:
            return End(Outcome.OK)
        run.look()
        if run.is_over():
            return run.timeout()
        for answers, notes in calls.ended():
            run.tail.add(notes)
            run.wrote(answers)


class _Calls:
    """Calls on their way."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.open: set[Future[tuple[bytes, bytes]]] = set()
        self._endpoint = endpoint
        self._pool = ThreadPoolExecutor(IN_FLIGHT)
        self._stopped = threading.Event()

    def ask(self, lines: Sequence[bytes]) -> None:
        """Have these examples answered."""
        self.open.add(self._pool.submit(self._answered, lines))

    def ended(self) -> Iterator[tuple[bytes, bytes]]:
        """Lines of answers, and notes for the log, of calls that ended within a moment.

        Raises EndpointError.
        """
        done, self.open = wait(self.open, LOOK_SECONDS, FIRST_COMPLETED)
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
                return [*self._endpoint.predict(inputs, deadline_seconds=CALL_SECONDS)]
            except EndpointError as error:
                notes.append(str(error))
                if error.reason == "refused" and len(inputs) > 1:
                    return [one for each in inputs for one in self._predictions([each], notes)]
                if error.reason == "refused":
                    return [None]
                tries = min(tries + 1, MOST_DOUBLINGS)
                failures += error.reason != "busy"
                if error.permanent or error.reason == "rubbish" or failures == ATTEMPTS:
                    raise
                seconds = min(error.retry_after or 2.0**tries, LONGEST_WAIT_SECONDS)
                if self._stopped.wait(seconds):
                    raise


def _text(lines: Sequence[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()
