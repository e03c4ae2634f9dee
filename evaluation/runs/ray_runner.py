"""Run models on a Ray cluster, through a separate process that the queue's worker watches."""

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self, cast

from evaluation.contract import (
    AttemptFailed,
    BeatCallback,
    Ending,
    InvalidOutput,
    LineCallback,
    Outcome,
    Runnable,
)
from evaluation.heartbeat import BEAT_SECONDS
from evaluation.isolation.sandbox.choose import NoEngine, choose_runner
from evaluation.isolation.sandbox.limits import Limits
from evaluation.runs import ray_driver, ray_node

ROOT = Path(__file__).resolve().parents[2]
PASSED_VARIABLES = (
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "PYTHONPATH",
    "DOCKER_HOST",
    "SANDBOX_REQUIRED",
)
OVER_WORD = "over"
DRIVER_ENDED_MESSAGE = "The process that asks the cluster ended. The worker's log says why."


class ClusterFailed(AttemptFailed):
    """Raised when the cluster failed several times at the same work; the message says how."""


class _Driver:
    """The process that communicates with the cluster. It lives as long as the block."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "evaluation.runs.ray_driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=_make_environment(),
        )
        assert self._process.stdin
        assert self._process.stdout
        self._requests = self._process.stdin
        self._message_queue: queue.Queue[tuple[str, Any]] = queue.Queue()
        thread_arguments = [self._process.stdout, self._message_queue]
        threading.Thread(target=_read_messages, args=thread_arguments, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        # On SIGTERM the driver cancels its tasks, so that no sandbox is left on the nodes.
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ray_driver.CANCEL_SECONDS + BEAT_SECONDS)
        self._process.kill()
        with suppress(BrokenPipeError), self._process:
            pass  # closes what it did not read

    def send(self, message: Any) -> None:
        """Send a job or a request. If the process has ended, `iterate_messages` reports it."""
        with suppress(BrokenPipeError):
            pickle.dump(message, self._requests)
            self._requests.flush()

    def iterate_messages(self, beat: BeatCallback) -> Iterator[tuple[str, Any]]:
        """Yield messages with their values, then OVER_WORD at the end. Call `beat` every second."""
        while True:
            beat()
            with suppress(queue.Empty):
                yield self._message_queue.get(timeout=BEAT_SECONDS)


@dataclass
class RayRunner:
    """A runner that distributes a set in shards over the sandboxes of a cluster's nodes.

    address: as for `ray.init`. shard_size: the number of examples in one shard. key: as for
    `DockerRunner`.
    """

    address: str
    shard_size: int
    key: str
    make_runner: ray_node.RunnerFactory = choose_runner
    name: str = field(default="ray", init=False)

    def run(
        self,
        model: Runnable,
        inputs: Path,
        limits: Limits,
        *,
        take: LineCallback,
        beat: BeatCallback,
    ) -> Ending:
        """Run the model; see `Runner.run`. Raises NoEngine if the cluster is not available."""
        job = ray_driver.ClusterJob(
            self.address,
            self.shard_size,
            self.key,
            model,
            inputs.resolve(),
            limits,
            self.make_runner,
        )
        with _Driver() as driver:
            driver.send(job)
            for word, value in driver.iterate_messages(beat):
                match word:
                    case ray_driver.ANSWERS:
                        try:
                            for line in value:
                                take(line)
                        except InvalidOutput as error:
                            return Ending(Outcome.INVALID_OUTPUT, sentence=str(error))
                    case ray_driver.ENDED:
                        ending: Ending = value[0]
                        self.name = value[1] or self.name
                        return ending
                    case ray_driver.NOT_NOW:
                        raise NoEngine(value)
                    case _:  # OVER: the driver has ended without an answer
                        break
        return Ending(Outcome.INFRASTRUCTURE, sentence=DRIVER_ENDED_MESSAGE)


class NodeClient:
    """A client of a process on a node, which lasts from the first request to the end of the block.

    beat: called regularly while it works.
    """

    def __init__(self, process_request: ray_driver.ProcessRequest, beat: BeatCallback) -> None:
        self._process_request, self._beat = process_request, beat
        self._driver: _Driver | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._driver:
            self._driver.__exit__(*error)
            self._driver = None

    def do_errand(
        self,
        function: Callable[..., Iterator[Any]],
        *arguments: Any,
        target: Path | None = None,
        **folders: Path,
    ) -> Iterator[Any]:
        """Do an errand on the node, and yield its items; bytes are written to `target`.

        See `ErrandRequest`. Raises the errand's exception, NoEngine if the cluster is not
        available, and ClusterFailed.
        """
        if self._driver is None:
            self._driver = _Driver().__enter__()
            self._driver.send(self._process_request)
        self._driver.send(ray_driver.ErrandRequest(function, arguments, folders, target))
        for word, value in self._driver.iterate_messages(self._beat):
            match word:
                case ray_node.ITEM:
                    yield value
                case ray_driver.ENDED if value is None:
                    return
                case ray_driver.ENDED:
                    raise cast("Exception", value)
                case ray_driver.FAILED:
                    raise ClusterFailed(value)
                case ray_driver.NOT_NOW:
                    self.__exit__()
                    raise NoEngine(value)
                case _:  # the next process is tried
                    self.__exit__()
                    raise ClusterFailed(DRIVER_ENDED_MESSAGE)


def _make_environment() -> dict[str, str]:
    """Return the environment of the driver process: Ray's token, but none of the site's secrets."""
    environment = {"RAY_AUTH_MODE": "token"}
    for name, value in os.environ.items():
        if name.startswith("RAY_") or name in PASSED_VARIABLES:
            environment[name] = value
    # Last, so that no variable of the worker turns on Ray's usage reports.
    environment["RAY_USAGE_STATS_ENABLED"] = "0"
    return environment


def _read_messages(messages: IO[bytes], message_queue: "queue.Queue[tuple[str, Any]]") -> None:
    """Queue the messages that the process writes, until it ends or one cannot be read."""
    try:
        while True:
            message_queue.put(pickle.load(messages))  # noqa: S301 (written by our own code)
    except (EOFError, OSError, pickle.UnpicklingError, ValueError):
        pass
    finally:
        message_queue.put((OVER_WORD, None))
