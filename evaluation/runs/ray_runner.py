"""The runner of a Ray cluster, by a process of its own that the queue's worker watches."""

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

from evaluation.contract import AttemptFailed, Beat, Ending, InvalidOutput, Outcome, Runnable, Take
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
OVER = "over"
DRIVER_ENDED = "The process that asks the cluster ended. The worker's log says why."


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
        self._news: queue.Queue[tuple[str, Any]] = queue.Queue()
        reading = [self._process.stdout, self._news]
        threading.Thread(target=_read_messages, args=reading, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        # On SIGTERM the driver cancels its tasks, so that no sandbox is left on the nodes.
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ray_driver.CANCEL_SECONDS + BEAT_SECONDS)
        self._process.kill()
        with suppress(BrokenPipeError), self._process:
            pass  # closes what it did not read

    def ask(self, message: Any) -> None:
        """Send a job or a request. If the process has ended, `news` reports it."""
        with suppress(BrokenPipeError):
            pickle.dump(message, self._requests)
            self._requests.flush()

    def news(self, beat: Beat) -> Iterator[tuple[str, Any]]:
        """Yield messages with their values, then OVER when no more can come. Beats every second."""
        while True:
            beat()
            with suppress(queue.Empty):
                yield self._news.get(timeout=BEAT_SECONDS)


@dataclass
class RayRunner:
    """A runner that distributes a set in shards over the sandboxes of a cluster's nodes.

    address: as for `ray.init`. shard: the examples in one shard. key: as for `DockerRunner`.
    """

    address: str
    shard: int
    key: str
    make_runner: ray_node.MakeRunner = choose_runner
    name: str = field(default="ray", init=False)

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """Run the model as `Runner` says. Raises NoEngine if the cluster is not available."""
        job = ray_driver.Job(
            self.address, self.shard, self.key, model, inputs.resolve(), limits, self.make_runner
        )
        with _Driver() as driver:
            driver.ask(job)
            for word, value in driver.news(beat):
                match word:
                    case ray_driver.ANSWERS:
                        try:
                            for line in value:
                                take(line)
                        except InvalidOutput as problem:
                            return Ending(Outcome.INVALID_OUTPUT, sentence=str(problem))
                    case ray_driver.ENDED:
                        ending: Ending = value[0]
                        self.name = value[1] or self.name
                        return ending
                    case ray_driver.NOT_NOW:
                        raise NoEngine(value)
                    case _:  # OVER: the driver has ended without an answer
                        break
        return Ending(Outcome.INFRASTRUCTURE, sentence=DRIVER_ENDED)


class NodeClient:
    """A process on a node, from the first request to the end of the block.

    beat: called regularly while it works.
    """

    def __init__(self, place: ray_driver.ProcessRequest, beat: Beat) -> None:
        self._place, self._beat = place, beat
        self._driver: _Driver | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._driver:
            self._driver.__exit__(*error)
            self._driver = None

    def do(
        self,
        do: Callable[..., Iterator[Any]],
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
            self._driver.ask(self._place)
        self._driver.ask(ray_driver.ErrandRequest(do, arguments, folders, target))
        for word, value in self._driver.news(self._beat):
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
                case _:  # another process is asked next
                    self.__exit__()
                    raise ClusterFailed(DRIVER_ENDED)


def _make_environment() -> dict[str, str]:
    """Return the environment of the driver process: Ray's token, but none of the site's secrets."""
    environment = {"RAY_AUTH_MODE": "token"}
    for name, value in os.environ.items():
        if name.startswith("RAY_") or name in PASSED_VARIABLES:
            environment[name] = value
    environment["RAY_USAGE_STATS_ENABLED"] = "0"
    return environment


def _read_messages(messages: IO[bytes], news: "queue.Queue[tuple[str, Any]]") -> None:
    """Queue the messages that the process writes, until it ends or one cannot be read."""
    try:
        while True:
            news.put(pickle.load(messages))  # noqa: S301 (what our own code wrote)
    except (EOFError, OSError, pickle.UnpicklingError, ValueError):
        pass
    finally:
        news.put((OVER, None))
