"""One run on a Ray cluster: `python -m evaluation.runs.ray_driver`, a process that no job outlives.

Ray ends a process that has lost its cluster, and the tasks of a process that has ended; so neither
harms the worker of the queue, whose lease alone says whose the run is. Reads a pickled `Job` and
writes pickled pairs of a word and a value. No Django.
"""

import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.contract import PLAN, REST, Ending, Outcome, Runnable
from evaluation.heartbeat import nothing
from evaluation.runs.model_cache import pack
from evaluation.runs.ray_node import Done, MakeRunner, Parcel, Work, release, run_shard
from evaluation.runs.shards import LineFile, Together, cut, in_turn
from evaluation.sandbox.choose import runner_for
from evaluation.sandbox.limits import Exceeded, Limits
from evaluation.uploads.model_folders import digest_of

PIECE = 2**26  # bytes of a model that travel together
AT_ONCE = 64  # shards that are handed in: more wait here, not in Ray's memory
TRIES = 4  # of a shard whose nodes die
GONE_SECONDS = 15.0  # for sandboxes to be removed after a cancelled run
NOT_NOW, ANSWERS, ENDED = "not now", "answers", "ended"
DOCKER, MEASURE = "docker", "measure"
"""Resources of our own that nodes offer: sandboxes, and a machine that is set apart to measure."""
NO_CLUSTER = "It waits for the Ray cluster, which does not answer."
NO_NODE = "It waits for a node of the Ray cluster that offers {}."


@dataclass(frozen=True)
class Job:
    """A run: `address` as of `ray.init`, shard: examples of one, else as `Runner.run`."""

    address: str
    shard: int
    key: str
    model: Runnable
    inputs: Path
    limits: Limits
    make_runner: MakeRunner = runner_for


class NotNow(Exception):
    """The cluster cannot do it now; the message says what it waits for."""


def main() -> None:
    """Do the job on standard input, and tell on standard output what comes of it."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what libraries print is no message
        job: Job = pickle.load(sys.stdin.buffer)  # noqa: S301 (our parent wrote it)
        threading.Thread(target=_end_with_parent, daemon=True).start()

        def tell(word: str, value: Any) -> None:
            pickle.dump((word, value), out)
            out.flush()

        try:
            with Connected(job) as cluster:
                signal.signal(signal.SIGTERM, _stop)  # after Ray has set its own
                tell(ENDED, (cluster.run(partial(tell, ANSWERS)), cluster.runner))
        except NotNow as why:
            tell(NOT_NOW, str(why))
    os._exit(0)  # whatever threads Ray has left


def _end_with_parent() -> None:
    """Nobody waits for the answers of a worker that was killed."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _stop(number: int, frame: object) -> None:
    raise SystemExit(1)


class Connected:
    """The connection to a cluster, for one run."""

    def __init__(self, job: Job) -> None:
        self.job, self.runner = job, ""
        self._pending: dict[Any, int] = {}

    def __enter__(self) -> "Connected":
        """Raises NotNow."""
        import ray

        self.ray = ray
        try:
            ray.init(address=self.job.address, log_to_driver=False, logging_level="ERROR")
            self._has: Mapping[str, float] = ray.cluster_resources()
        except Exception as error:  # Ray and gRPC raise many kinds
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            raise NotNow(NO_CLUSTER) from None
        return self

    def __exit__(self, *error: object) -> None:
        """No sandbox is left, as far as nodes answer."""
        for task in self._pending:
            self.ray.cancel(task)
        if self._pending:
            self.ray.wait([*self._pending], num_returns=len(self._pending), timeout=GONE_SECONDS)
        self.ray.shutdown()

    def run(self, tell: Callable[[Sequence[bytes]], None]) -> Ending:
        """How all shards end together; `tell` gets the answers of each as it comes.

        Raises NotNow.
        """
        together = Together(self.job.limits)
        try:
            for number, done in self.shards():
                if done.ending.outcome != Outcome.OK:
                    return done.ending
                together.add(number, done.ending, done.answers)
                tell(done.answers)
        except Exceeded as over:
            return over.ending
        except self.ray.exceptions.RayError as error:
            print(error, file=sys.stderr)
            sentence = f"The cluster that runs models failed ({type(error).__name__})."
            return Ending(Outcome.INFRASTRUCTURE, sentence=sentence)
        return together.ending()

    def shards(self) -> Iterator[tuple[int, Done]]:
        """Each shard with what came of it, as they end."""
        for number, work in enumerate(self._works(self._carried())):
            self._pending[self._begin(work, measures=number == 0)] = number
            if len(self._pending) >= AT_ONCE:
                yield self._next()
        while self._pending:
            yield self._next()

    def _next(self) -> tuple[int, Done]:
        ready = None
        while ready is None:  # signals are seen in between
            ready = next(iter(self.ray.wait([*self._pending], timeout=1.0)[0]), None)
        done: Done = self.ray.get(ready)
        self.runner = f"ray-{done.runner}"
        return self._pending.pop(ready), done

    def _carried(self) -> Work:
        """The whole set as work, whose model lies in the object store."""
        model, needs_docker = self.job.model, self.job.model.image or DOCKER in self._has
        return Work(
            self.job.key,
            replace(model, folder=None, lora=None),
            "docker" if needs_docker else "process",
            self.job.limits,
            b"",
            release(),
            folder=self._packed(model.folder),
            lora=self._packed(model.lora),
            image=self._saved(model.image),
        )

    def _works(self, whole: Work) -> Iterator[Work]:
        """The work of each shard, the first of which is measured."""
        lines, most = LineFile(self.job.inputs), self.job.shard
        if len(lines) <= most:
            yield replace(whole, inputs=self.job.inputs.read_bytes())
        elif whole.folder is None:  # an image, which answers as it likes
            for number, part in enumerate(in_turn(len(lines), most)):
                yield replace(whole, key=f"{whole.key}-{number}", inputs=lines.plain(part))
        else:
            for number, shard in enumerate(cut(lines.batches(self._plan(whole)), most)):
                model = replace(whole.model, part=REST if number else "")
                key, inputs = f"{whole.key}-{number}", lines.text(shard)
                yield replace(whole, key=key, model=model, inputs=inputs)

    def _plan(self, whole: Work) -> Sequence[bytes]:
        """The batches of the whole set, as the harness makes them. Raises Exceeded."""
        work = replace(
            whole,
            key=f"{whole.key}-plan",
            model=replace(whole.model, part=PLAN),
            inputs=self.job.inputs.read_bytes(),
        )
        self._pending[self._begin(work)] = -1
        done = self._next()[1]
        if done.ending.outcome != Outcome.OK:
            raise Exceeded(done.ending)
        return done.answers

    def _begin(self, work: Work, *, measures: bool = False) -> Any:
        """Hand a shard in; Ray places it by what it needs, and again where its node dies.

        Raises NotNow where no node of the cluster offers such a thing.
        """
        limits = work.limits
        own = {MEASURE: 1} if measures and MEASURE in self._has else {}
        if work.runner == "docker" and not own:
            own = {DOCKER: 1}
        gpus = {"num_gpus": 1} if work.model.gpu else {}
        for name in (*own, *(["GPU"] if gpus else [])):
            if name not in self._has:
                raise NotNow(NO_NODE.format(name))
        task = self.ray.remote(
            num_cpus=limits.threads,
            memory=limits.memory_bytes,
            resources=own,
            max_retries=TRIES - 1,
            scheduling_strategy="SPREAD",
            **gpus,
        )(run_shard)
        return task.remote(work, self.job.make_runner)

    def _packed(self, folder: Path | None) -> Parcel | None:
        if folder is None:
            return None
        pieces = _Store(self.ray.put)
        pack(folder, pieces, nothing)  # type: ignore[arg-type]
        return Parcel(digest_of(folder, nothing), pieces.done())

    def _saved(self, image: str | None) -> Parcel | None:
        if image is None:
            return None
        from evaluation.sandbox.images import saved

        pieces = _Store(self.ray.put)
        for data in saved(image):
            pieces.write(data)
        return Parcel(image, pieces.done())


class _Store:
    """Takes what is written into Ray's object store, in pieces."""

    def __init__(self, put: Callable[[bytes], Any]) -> None:
        self._put, self._held, self._pieces = put, bytearray(), list[Any]()

    def write(self, data: bytes) -> int:
        self._held += data
        while len(self._held) >= PIECE:
            self._pieces.append(self._put(bytes(self._held[:PIECE])))
            del self._held[:PIECE]
        return len(data)

    def done(self) -> Sequence[Any]:
        """The references to all pieces."""
        if self._held:
            self._pieces.append(self._put(bytes(self._held)))
        return self._pieces


if __name__ == "__main__":
    main()
