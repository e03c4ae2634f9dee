"""Run one job on a Ray cluster, in a process of its own: `python -m evaluation.runs.ray_driver`.

Ray ends a process that has lost its cluster, and the tasks of a process that has ended. Neither
harms the queue's worker, whose lease alone decides who has the job. Reads a pickled `ClusterJob`,
or a `ProcessRequest` followed by `ErrandRequest`s. Writes pickled pairs of a word and a value. No
Django.
"""

import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

from evaluation.contract import (
    BASE_IMAGE,
    GIB,
    PLAN_PART,
    REST_PART,
    Ending,
    NotNow,
    Outcome,
    Runnable,
)
from evaluation.heartbeat import skip_beat
from evaluation.isolation.sandbox.choose import choose_runner, is_sandbox_required
from evaluation.isolation.sandbox.limits import LimitExceeded, Limits
from evaluation.isolation.uploads.model_folders import digest_folder
from evaluation.runs.model_cache import pack_folder
from evaluation.runs.ray_node import (
    ITEM,
    Errand,
    ErrandActor,
    Parcel,
    RunnerFactory,
    ShardResult,
    ShardWork,
    compute_release_digest,
    run_shard,
)
from evaluation.runs.shards import LineFile, MergedEnding, cut_batches, cut_lines

PIECE_BYTES = 2**26  # bytes of a model that are sent together
MAX_PENDING_SHARDS = 64  # shards submitted to Ray; others wait here, not in its memory
MAX_TRIES = 4  # for a shard or an errand whose nodes die
CANCEL_SECONDS = 15.0  # for sandboxes to be removed after a cancelled run
NOT_NOW, ANSWERS, ENDED, FAILED = "not now", "answers", "ended", "failed"
DOCKER_RESOURCE, MEASURE_RESOURCE = "docker", "measure"
"""Our own resources that nodes may offer: sandboxes, and a machine reserved for measurements."""
RAY_OPTIONS = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
"""Ray's own resources: the argument that requests each of them."""
NO_CLUSTER_MESSAGE = "It waits for the Ray cluster, which does not answer."
NO_NODE_MESSAGE = "It waits for a node of the Ray cluster that offers {}."
CLUSTER_FAILED_MESSAGE = "The cluster that runs models failed ({})."
POLL_SECONDS = 1.0


@dataclass(frozen=True)
class ClusterJob:
    """A run on the cluster.

    address: as for `ray.init`. shard_size: the number of examples in one shard. key: as for
    `DockerRunner`. make_runner: makes the runner of a shard on its node. The other fields are the
    arguments of `Runner.run`.
    """

    address: str
    shard_size: int
    key: str
    model: Runnable
    inputs: Path
    limits: Limits
    make_runner: RunnerFactory = choose_runner


@dataclass(frozen=True)
class ProcessRequest:
    """A request for a process on a node that has these Ray resources.

    needs: the amount of each of CPU, memory (bytes), GPU and docker.
    """

    address: str
    needs: Mapping[str, float]


@dataclass(frozen=True)
class ErrandRequest:
    """A request to a process on a node: an `Errand` whose folders are on this machine.

    Bytes that the function yields are written to `target`.
    If the node dies, another node starts the errand from the beginning: `target` is rewritten, and
    other items are yielded twice.
    """

    function: Callable[..., Iterator[Any]]
    arguments: Sequence[Any]
    folders: Mapping[str, Path] = field(default_factory=dict)
    target: Path | None = None


ReportCallback = Callable[[str, Any], None]


def main() -> None:
    """Do the job read from standard input, and write its messages to standard output."""
    with os.fdopen(os.dup(1), "wb") as output_file:
        os.dup2(2, 1)  # output of libraries is not a message, and goes to the log
        errand_queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=_queue_requests, args=[errand_queue], daemon=True).start()

        def send_report(word: str, value: Any) -> None:
            pickle.dump((word, value), output_file)
            output_file.flush()

        try:
            match errand_queue.get():
                case ClusterJob() as job:
                    with RunConnection(job) as cluster:
                        signal.signal(signal.SIGTERM, _stop)  # after Ray has set its own
                        send_report(
                            ENDED, (cluster.run(partial(send_report, ANSWERS)), cluster.runner)
                        )
                case ProcessRequest() as process_request:
                    with NodeConnection(process_request) as connection:
                        signal.signal(signal.SIGTERM, _stop)
                        while (
                            True
                        ):  # until `_queue_requests` sees that the worker has closed the pipe
                            connection.do_request(_wait_for_request(errand_queue), send_report)
        except NotNow as error:
            send_report(NOT_NOW, str(error))
    os._exit(0)  # at once, even if threads of Ray are still alive


def _queue_requests(errand_queue: "queue.SimpleQueue[Any]") -> None:
    """Queue the requests of the worker, and end this process when the input ends.

    A worker may be killed while it writes a request, so unreadable input counts as the end.
    """
    lines = os.fdopen(os.dup(0), "rb")  # Python closes its own at the end, while this one reads
    try:
        while True:
            errand_queue.put(pickle.load(lines))  # noqa: S301 (our parent wrote it)
    except (EOFError, pickle.UnpicklingError):
        pass
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def _wait_for_request(errand_queue: "queue.SimpleQueue[Any]") -> ErrandRequest:
    """Wait for the next request, and return it."""
    while True:
        try:
            request: ErrandRequest = errand_queue.get(timeout=POLL_SECONDS)
            return request
        except queue.Empty:  # Python handles signals in between
            pass


def _stop(number: int, frame: object) -> None:
    raise SystemExit(1)


class Cluster:
    """The connection to a cluster."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> Self:
        """Connect to the cluster. Raises NotNow."""
        import ray

        self.ray = ray
        try:
            # The logs of the tasks stay on their nodes: this process's output is messages.
            ray.init(address=self._address, log_to_driver=False, logging_level="ERROR")
            self._nodes = self._list_alive_nodes()
        except Exception as error:  # Ray and gRPC raise many kinds of errors
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            raise NotNow(NO_CLUSTER_MESSAGE) from None
        return self

    def __exit__(self, *error: object) -> None:
        self.ray.shutdown()

    def _list_alive_nodes(self) -> list[Mapping[str, float]]:
        """Return the resources of each node that is alive."""
        return [node["Resources"] for node in self.ray.nodes() if node["Alive"]]

    def is_offered(self, name: str) -> bool:
        """Return whether any node offers a resource."""
        return any(name in node for node in self._nodes)

    def wait_for_first(
        self, references: Sequence[Any], needs: Iterable[Mapping[str, float]]
    ) -> Any:
        """Wait for the first of several results, and return its reference.

        needs: the resources that each one requires.
        Raises NotNow if the last node that offers them died, because Ray would wait forever.
        """
        while not (ready_references := self.ray.wait(references, timeout=POLL_SECONDS)[0]):
            with suppress(Exception):  # many kinds of errors, while Ray's own store restarts
                self._nodes = self._list_alive_nodes()
            for node_needs in needs:
                self._check_needs(node_needs)
        return ready_references[0]

    def _check_needs(self, needs: Mapping[str, float]) -> None:
        """Raise NotNow unless a node offers all of `needs`."""
        for node in self._nodes:
            if all(node.get(name, 0) >= needs[name] for name in needs):
                return
        resource_texts = ", ".join(
            _describe_resource(name, amount) for name, amount in needs.items()
        )
        raise NotNow(NO_NODE_MESSAGE.format(resource_texts))

    def choose_node(self, needs: Mapping[str, float]) -> dict[str, Any]:
        """Return the Ray options that place a task or an actor.

        Raises NotNow if no node meets `needs`.
        """
        self._check_needs(needs)
        options: dict[str, Any] = {}
        our_resources = {}
        for name, amount in needs.items():
            if name in RAY_OPTIONS:
                options[RAY_OPTIONS[name]] = amount
            else:
                our_resources[name] = amount
        return {**options, "resources": our_resources, "scheduling_strategy": "SPREAD"}

    def pack_folder(self, folder: Path | None) -> Parcel | None:
        """Put the files of a folder into the object store, and return a reference to them.

        Returns None if `folder` is None.
        """
        if folder is None:
            return None
        pieces = _PieceStore(self.ray.put)
        pack_folder(folder, pieces, skip_beat)  # type: ignore[arg-type]
        return Parcel(digest_folder(folder, skip_beat), pieces.finish())


def _describe_resource(name: str, amount: float) -> str:
    if name == "memory":
        return f"{amount / GIB:.4g} GiB"
    return f"{amount:g} {name}"


class NodeConnection(Cluster):
    """A connection to a process on a node, which does one errand after the other."""

    def __init__(self, process_request: ProcessRequest) -> None:
        super().__init__(process_request.address)
        self._process_request = process_request
        self._process: Any = None
        self._parcels: dict[Path, Parcel | None] = {}

    def do_request(self, request: ErrandRequest, send_report: ReportCallback) -> None:
        """Do the errand of a request, and call `send_report` with each item, then with the end.

        The end is ENDED with None or the exception that the errand raised. After MAX_TRIES
        attempts, it is FAILED with a message. Raises NotNow.
        """
        folders = {name: self._pack_folder_once(folder) for name, folder in request.folders.items()}
        errand = Errand(request.function, request.arguments, folders, compute_release_digest())
        for _ in range(MAX_TRIES):
            try:
                return send_report(ENDED, self._do_errand(errand, request.target, send_report))
            except self.ray.exceptions.RayError as error:
                print(error, file=sys.stderr)
                self._process, failure = None, type(error).__name__
        send_report(FAILED, CLUSTER_FAILED_MESSAGE.format(failure))

    def _do_errand(
        self, errand: Errand, target: Path | None, send_report: ReportCallback
    ) -> Exception | None:
        """Do the errand, and return the exception that it raised, or None.

        Raises NotNow, and RayError if the process on the node has died.
        """
        if self._process is None:
            self._process = self.ray.remote(**self.choose_node(self._process_request.needs))(
                ErrandActor
            ).remote()
        stream = self._process.do_errand.options(num_returns="streaming").remote(errand)
        with ExitStack() as stack:
            file = None
            if target:  # opened here, so that a second attempt starts it again
                file = stack.enter_context(target.open("wb"))
            while True:
                # `next` would wait forever for a node that has died, but this notices it.
                self.wait_for_first([stream], [self._process_request.needs])
                try:
                    word, value = self.ray.get(next(stream))
                except StopIteration:
                    return None
                if word != ITEM:
                    return cast("Exception", value)
                if file and isinstance(value, bytes):
                    file.write(value)
                else:
                    send_report(ITEM, value)

    def _pack_folder_once(self, folder: Path) -> Parcel:
        if folder not in self._parcels:
            self._parcels[folder] = self.pack_folder(folder)
        return cast("Parcel", self._parcels[folder])


class RunConnection(Cluster):
    """A connection to a cluster for one run."""

    def __init__(self, job: ClusterJob) -> None:
        super().__init__(job.address)
        self.job, self.runner = job, ""
        self._pending: dict[Any, int] = {}
        self._needs: dict[Any, Mapping[str, float]] = {}

    def __exit__(self, *error: object) -> None:
        """Cancel pending tasks, so that no sandbox is left on nodes that still answer."""
        for task in self._pending:
            self.ray.cancel(task)
        if self._pending:
            tasks = list(self._pending)
            self.ray.wait(tasks, num_returns=len(tasks), timeout=CANCEL_SECONDS)
        super().__exit__(*error)

    def run(self, send_report: Callable[[Sequence[bytes]], None]) -> Ending:
        """Run all shards, and return their combined ending. Raises NotNow.

        A shard that fails ends the run with its own ending. send_report: called with the answers of
        each shard when it ends.
        """
        merged_ending = MergedEnding(self.job.limits)
        try:
            for number, result in self.iterate_shards():
                if result.ending.outcome != Outcome.OK:
                    return result.ending
                merged_ending.add(number, result.ending, result.answers)
                send_report(result.answers)
        except LimitExceeded as error:
            return error.ending
        except self.ray.exceptions.RayError as error:
            print(error, file=sys.stderr)
            sentence = CLUSTER_FAILED_MESSAGE.format(type(error).__name__)
            return Ending(Outcome.INFRASTRUCTURE, sentence=sentence)
        return merged_ending.merge_endings()

    def iterate_shards(self) -> Iterator[tuple[int, ShardResult]]:
        """Yield the number and the result of each shard as it ends."""
        for number, work in enumerate(self._split_work(self._pack_work())):
            self._pending[self._submit_shard(work, is_measured=number == 0)] = number
            if (
                len(self._pending) >= MAX_PENDING_SHARDS
            ):  # wait for one before the next is submitted
                yield self._take_next_result()
        while self._pending:
            yield self._take_next_result()

    def _take_next_result(self) -> tuple[int, ShardResult]:
        pending = list(self._pending)
        reference = self.wait_for_first(pending, [self._needs[task] for task in pending])
        result: ShardResult = self.ray.get(reference)
        self.runner = f"ray-{result.runner}"
        return self._pending.pop(reference), result

    def _pack_work(self) -> ShardWork:
        """Return the whole set as work whose model is in the object store."""
        model = self.job.model
        runner = "process"
        if model.image or self.is_offered(DOCKER_RESOURCE) or is_sandbox_required():
            runner = "docker"
        return ShardWork(
            self.job.key,
            replace(model, folder=None, lora=None),
            runner,
            self.job.limits,
            b"",
            compute_release_digest(),
            folder=self.pack_folder(model.folder),
            lora=self.pack_folder(model.lora),
            image=self._pack_image(model.image),
        )

    def _split_work(self, whole_work: ShardWork) -> Iterator[ShardWork]:
        """Yield the work of each shard. Speed is measured on the first one."""
        lines, shard_size = LineFile(self.job.inputs), self.job.shard_size
        if len(lines) <= shard_size:
            yield replace(whole_work, inputs=self.job.inputs.read_bytes())
        elif whole_work.folder is None:  # an image, whose batches are its own
            for number, shard_lines in enumerate(cut_lines(len(lines), shard_size)):
                yield replace(
                    whole_work,
                    key=f"{whole_work.key}-{number}",
                    inputs=lines.read_lines(shard_lines),
                )
        else:
            # Padding changes the last digits of answers, so use the batches of the whole set.
            shards = cut_batches(lines.build_batches(self._plan_batches(whole_work)), shard_size)
            for number, shard in enumerate(shards):
                model = whole_work.model
                if number > 0:  # only the first shard measures examples that are sent alone
                    model = replace(model, part=REST_PART)
                key, inputs = f"{whole_work.key}-{number}", lines.build_shard_text(shard)
                yield replace(whole_work, key=key, model=model, inputs=inputs)

    def _plan_batches(self, whole_work: ShardWork) -> Sequence[bytes]:
        """Return the batches of the whole set, as the harness divides it. Raises LimitExceeded."""
        work = replace(
            whole_work,
            key=f"{whole_work.key}-plan",
            model=replace(whole_work.model, part=PLAN_PART),
            inputs=self.job.inputs.read_bytes(),
        )
        self._pending[self._submit_shard(work)] = -1
        result = self._take_next_result()[1]
        if result.ending.outcome != Outcome.OK:
            raise LimitExceeded(result.ending)
        return result.answers

    def _submit_shard(self, work: ShardWork, *, is_measured: bool = False) -> Any:
        """Submit a shard and return its reference. Ray submits it again if its node dies.

        is_measured: whether the shard's speed counts, for which a reserved machine is used if there
        is one. Raises NotNow if no node of the cluster meets its requirements.
        """
        limits = work.limits
        needs = {"CPU": limits.threads, "memory": limits.memory_bytes}
        # Speed is compared between models, so the measured shard is sent to a machine that
        # does nothing else, if the cluster has one.
        if is_measured and self.is_offered(MEASURE_RESOURCE):
            needs[MEASURE_RESOURCE] = 1
        elif work.runner == "docker":
            needs[DOCKER_RESOURCE] = 1
        if work.model.gpu:
            needs["GPU"] = 1
        task = self.ray.remote(**self.choose_node(needs), max_retries=MAX_TRIES - 1)(run_shard)
        reference = task.remote(work, self.job.make_runner)
        self._needs[reference] = needs
        return reference

    def _pack_image(self, image: str | None) -> Parcel | None:
        if image in (None, BASE_IMAGE):  # nodes already have the image in which metrics run
            return None
        from evaluation.isolation.sandbox.images import stream_image

        pieces = _PieceStore(self.ray.put)
        for block in stream_image(image):
            pieces.write(block)
        return Parcel(image, pieces.finish())


class _PieceStore:
    """A write-only file whose content goes into Ray's object store in pieces."""

    def __init__(self, put: Callable[[bytes], Any]) -> None:
        self._put, self._buffer, self._pieces = put, bytearray(), list[Any]()

    def write(self, data: bytes) -> int:
        self._buffer += data
        while len(self._buffer) >= PIECE_BYTES:
            self._pieces.append(self._put(bytes(self._buffer[:PIECE_BYTES])))
            del self._buffer[:PIECE_BYTES]
        return len(data)

    def finish(self) -> Sequence[Any]:
        """Store the rest of the buffer, and return the references to all pieces."""
        if self._buffer:
            self._pieces.append(self._put(bytes(self._buffer)))
        return self._pieces


if __name__ == "__main__":
    # Pickled requests name the classes of the module, not those of `__main__`.
    from evaluation.runs import ray_driver

    ray_driver.main()
