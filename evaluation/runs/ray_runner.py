"""Runs a model on a Ray cluster, by a process of its own that the queue's worker watches."""

import os
import pickle
import queue
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from evaluation.contract import Beat, Ending, InvalidOutput, Outcome, Runnable, Take
from evaluation.heartbeat import BEAT_SECONDS
from evaluation.runs import ray_driver
from evaluation.runs.ray_node import MakeRunner
from evaluation.sandbox.choose import NoEngine, runner_for
from evaluation.sandbox.limits import Limits

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("PATH", "HOME", "TMPDIR", "LANG", "PYTHONPATH", "DOCKER_HOST")
OVER = "over"
FAILED = "The process that asks the cluster ended. The worker's log says why."


@dataclass
class RayRunner:
    """A set in shards of so many examples, side by side in the sandboxes of a cluster's nodes.

    address: as of `ray.init`. key: as `DockerRunner`'s.
    """

    address: str
    shard: int
    key: str
    make_runner: MakeRunner = runner_for
    name: str = field(default="ray", init=False)

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """See `Runner`. Raises NoEngine where the cluster cannot do it now."""
        job = ray_driver.Job(
            self.address, self.shard, self.key, model, inputs.resolve(), limits, self.make_runner
        )
        with subprocess.Popen(
            [sys.executable, "-m", "evaluation.runs.ray_driver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=_environment(),
        ) as process:
            try:
                return self._watched(process, job, take, beat)
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(ray_driver.GONE_SECONDS + BEAT_SECONDS)
                process.kill()

    def _watched(
        self, process: "subprocess.Popen[bytes]", job: ray_driver.Job, take: Take, beat: Beat
    ) -> Ending:
        assert process.stdin
        assert process.stdout
        news: queue.Queue[tuple[str, Any]] = queue.Queue()
        threading.Thread(target=_read, args=[process.stdout, news], daemon=True).start()
        pickle.dump(job, process.stdin)
        process.stdin.flush()
        while True:
            beat()
            try:
                word, value = news.get(timeout=BEAT_SECONDS)
            except queue.Empty:
                continue
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
                case _:
                    return Ending(Outcome.INFRASTRUCTURE, sentence=FAILED)


def _environment() -> dict[str, str]:
    """Nothing of the site's secrets but Ray's token, without which no cluster is asked."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    rays = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    return {"RAY_AUTH_MODE": "token", **rays, **kept, "RAY_USAGE_STATS_ENABLED": "0"}


def _read(messages: IO[bytes], news: "queue.Queue[tuple[str, Any]]") -> None:
    """Pass on what the process writes, until it ends."""
    try:
        while True:
            news.put(pickle.load(messages))  # noqa: S301 (what our own code wrote)
    except (EOFError, OSError, pickle.UnpicklingError, ValueError):
        news.put((OVER, None))
