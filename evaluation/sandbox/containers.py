"""Runs submitted models in Docker containers that are given nothing and reach nothing.

The door to all that concerns Docker: its library is imported here and in `evaluation.sandbox_*`
alone, and only workers have it. docs/evaluation.md says how a run may end, docs/threat-model.md
which risk is left.
"""

import logging
import math
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.types import LogConfig, Mount, Ulimit

from evaluation.contract import (
    MIB,
    Beat,
    Ending,
    InvalidOutput,
    Limits,
    Outcome,
    Runnable,
    Take,
)
from evaluation.sandbox.engine import EngineError, connect, engine
from evaluation.sandbox.harness import shim
from evaluation.sandbox.harness.arguments import shimmed, written
from evaluation.sandbox.images import (
    ImageRefused,
    check_image,
    has_image,
    inspect_image,
    load_image,
    pull_image,
)
from evaluation.sandbox.monitor import LOOK_SECONDS, READ_BYTES, End, Watched
from evaluation.sandbox.output import STDERR, Frames, OutputTooLargeError
from evaluation.sandbox.permissions import readable
from evaluation.sandbox.usage import cgroup_of

__all__ = [
    "DockerRunner",
    "EngineError",
    "check_image",
    "engine",
    "has_image",
    "inspect_image",
    "list_ours",
    "load_image",
    "pull_image",
    "remove",
]
logger = logging.getLogger(__name__)

RUNTIME_IMAGE = "dynabench-runtime:latest"
LABEL = "org.dynabench.sandbox"  # its value is the key of the run, and so is the container's name
PREFIX = "dynabench-sandbox-"
SECCOMP = (Path(__file__).parent / "seccomp.json").read_text()
INPUTS, FOLDER, SHIM = "/input/examples.jsonl", "/model", "/dynabench/shim.py"  # in the sandbox
NOBODY = "65534:65534"
HOME = "/tmp"  # noqa: S108 (of the sandbox, a file system of its own)
DIED_SECONDS = 10.0  # after its output ended
OOM_SECONDS = 1.0  # after it died
SIGKILL_CODE = 128 + signal.SIGKILL
SHM_BYTES = 64 * MIB
GVISOR_PROCESSES = 1024  # its own threads count too
SCRATCH = "rw,noexec,nosuid,nodev,size={},nr_inodes=16384,mode=1777"
NO_IMAGE = "The image is not on this worker."
NO_RUNTIME = (
    f"The image {RUNTIME_IMAGE} is missing: the operator builds it with scripts/runtime_image.sh."
)
KILLED = "The container was ended from outside, or the engine was."
CHILD_OOM = (
    "A process that the model had started was ended because it needed more memory than there was."
)


class Ours(NamedTuple):
    """A container that was made for a run."""

    name: str
    key: str
    is_running: bool


def list_ours(prefix: str = "") -> list[Ours]:
    """The containers on this engine whose run's key begins so. Raises one of EngineError.

    Name and label must agree: an image may bring any label, but it cannot name its container.
    """
    with closing(connect()) as client:
        found = client.api.containers(all=True, filters={"label": LABEL})
    ours = [
        Ours(name.removeprefix("/"), row["Labels"][LABEL], row["State"] == "running")
        for row in found
        for name in row["Names"]
    ]
    return [one for one in ours if one.name == PREFIX + one.key and one.key.startswith(prefix)]


def remove(name: str) -> None:
    """End and remove a container, if it is there. Raises one of EngineError."""
    with closing(connect()) as client, suppress(NotFound):
        client.api.remove_container(name, v=True, force=True)


class DockerRunner:
    """The sandbox of one attempt to run a model.

    key: names the attempt, and no other one on this engine; begin it with what tells installations
    apart that share an engine (`list_ours`). Letters, digits, dashes.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self._engine = engine()
        self.name = "docker-runsc" if self._engine and self._engine.has_runsc else "docker"

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """See `evaluation.contract.Runner`. No container is left, unless the engine is gone."""
        run = _Run(limits, take, beat, trusted=model.image is None)
        try:
            if not self._engine:
                raise DockerException("no Docker engine answered")
            with closing(run.patiently(connect)) as client:
                end = self._run(client, run, model, inputs)
        except EngineError as error:
            if error is run.beat_error:
                raise
            end = _infrastructure(error)
        return run.ending(end)

    def _run(
        self, client: docker.DockerClient, run: "_Run", model: Runnable, inputs: Path
    ) -> "End":
        try:
            image = client.images.get(model.image or RUNTIME_IMAGE)
        except ImageNotFound:
            return End(Outcome.INFRASTRUCTURE, NO_IMAGE if model.image else NO_RUNTIME)
        if model.folder:
            with readable(model.folder, inputs.parent, run.patiently) as folder:
                return self._in(client, run, image, replace(model, folder=folder), inputs)
        return self._in(client, run, image, model, inputs)

    def _in(
        self, client: docker.DockerClient, run: "_Run", image: Any, model: Runnable, inputs: Path
    ) -> "End":
        """Run it in a container of the image, which is gone at the end."""
        inputs.chmod(0o644)  # for nobody, as whom the model runs
        options = self._options(image, model, inputs, run.limits)
        try:
            with run.refusals():
                container = run.patiently(lambda: client.containers.create(image.id, **options))
            return run.watch(client, container)
        except ImageRefused as why:
            return End(Outcome.REJECTED, str(why))
        except InvalidOutput as problem:
            return End(Outcome.INVALID_OUTPUT, str(problem))
        except OutputTooLargeError:
            return run.too_large()
        finally:
            with suppress(*EngineError):  # what is left is removed by name, later
                remove(PREFIX + self.key)

    def _options(self, image: Any, model: Runnable, inputs: Path, limits: Limits) -> dict[str, Any]:
        """The arguments of `containers.create`; evaluation-wide rules, none of them an option."""
        assert self._engine
        runsc = self._engine.has_runsc
        processes = max(limits.processes, GVISOR_PROCESSES) if runsc else limits.processes
        cpus = min(limits.cpus, self._engine.cpus)
        threads = math.ceil(cpus)
        mounts = [Mount(INPUTS, str(inputs.resolve()), type="bind", read_only=True)]
        entrypoint, command = _command(model, image.attrs["Config"], threads)
        if model.adapter != "jsonl":
            mounts.append(Mount(SHIM, str(Path(shim.__file__)), type="bind", read_only=True))
        if model.folder:
            mounts.append(Mount(FOLDER, str(model.folder.resolve()), type="bind", read_only=True))
        # A path that the image declares as a volume would be writable, on the disk of the host.
        volumes = dict.fromkeys(image.attrs["Config"].get("Volumes") or (), "ro,size=4k,mode=555")
        ulimits = [("core", 0), ("nofile", 4096), ("fsize", limits.scratch_bytes)]
        if runsc:  # with runc it would count the processes of all containers of this user
            ulimits.append(("nproc", limits.processes))
        return {
            "name": PREFIX + self.key,
            "labels": {LABEL: self.key},
            "entrypoint": entrypoint,
            "command": command,
            "environment": {"HOME": HOME, "LANG": "C.UTF-8", "OMP_NUM_THREADS": str(threads)},
            "use_config_proxy": False,
            "hostname": "sandbox",
            "user": NOBODY,
            "network_mode": "none",
            "network_disabled": True,
            "read_only": True,
            "tmpfs": {**volumes, HOME: SCRATCH.format(limits.scratch_bytes)},
            "mounts": mounts,
            "ipc_mode": "private",
            "shm_size": SHM_BYTES,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true", f"seccomp={SECCOMP}"],
            "pids_limit": processes,
            "mem_limit": limits.memory_bytes,
            "memswap_limit": limits.memory_bytes,  # as much as memory: no swap
            "nano_cpus": int(cpus * 1e9),
            "ulimits": [Ulimit(name=name, soft=most, hard=most) for name, most in ulimits],
            "oom_score_adj": 500,  # before anything of the host
            "healthcheck": {"test": ["NONE"]},
            "log_config": LogConfig(type="none"),  # we keep the end of it
            "init": True,
            "runtime": "runsc" if runsc else None,
        }


class _Run(Watched):
    """A run that is watched through the engine."""

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """What the engine refuses to make or start is the fault of an image that is not ours."""
        try:
            yield
        except NotFound:  # somebody removed it meanwhile
            raise
        except APIError as error:
            if self.trusted or not error.is_client_error():
                raise
            raise ImageRefused(f"The image cannot be started: {error.explanation}") from None

    def watch(self, client: docker.DockerClient, container: Container) -> End:
        """Start a container and see it to its end.

        Raises ImageRefused, InvalidOutput, OutputTooLargeError, EngineError, and what `beat` does.
        """
        with _listening(client, container.id) as news, _attached(container) as output:
            with self.refusals():
                self.patiently(container.start)
            self.started()
            container.reload()
            cgroup = cgroup_of(container.attrs["State"]["Pid"], container.id)
            if cgroup:
                self.sample = cgroup.sample
            finished = self._read(output)
            self.patiently(container.reload)  # fails when the engine, not the model, is silent
            if not finished:
                return self.timeout()
            self.patiently(lambda: news.over.wait(DIED_SECONDS))
            if "die" not in news.actions or "kill" in news.actions:
                return End(Outcome.INFRASTRUCTURE, KILLED)
            container.reload()
            state = container.attrs["State"]
            if state["ExitCode"] == SIGKILL_CODE and not state["OOMKilled"]:
                state["OOMKilled"] = news.oom.wait(OOM_SECONDS)
        end = self._exit(state)
        if end.outcome == Outcome.OK:  # a model that died may have died in the middle of a line
            self.closed()
        return end

    def _read(self, output: socket.socket) -> bool:
        """Take answers until the model has ended; False: it did not in time."""
        output.settimeout(LOOK_SECONDS)
        frames = Frames()
        while not self.is_over():
            self.look()
            try:
                data = output.recv(READ_BYTES)
            except TimeoutError:
                continue
            if not data:
                return True
            for stream, part in frames.feed(data):
                if stream == STDERR:
                    self.tail.add(part)
                else:
                    self.wrote(part)
        return False

    def _exit(self, state: dict[str, Any]) -> End:
        """What exit code and OOMKilled say. OOMKilled alone may tell of a child that was let go."""
        code, oom = state["ExitCode"], state["OOMKilled"]
        if code == 0:
            return End(Outcome.OK, warning=CHILD_OOM if oom else "")
        return self.oom() if oom else self.failed(code)


class _News:
    """What the engine tells of a container, until it has died or the engine has."""

    def __init__(self) -> None:
        self.actions: set[str] = set()
        self.over, self.oom = threading.Event(), threading.Event()

    def listen(self, events: Iterator[dict[str, Any]]) -> None:
        with suppress(*EngineError, ValueError):
            for event in events:
                self.actions.add(event["Action"])
                if event["Action"] == "die":
                    self.over.set()
                elif event["Action"] == "oom":  # may be told after the death that it caused
                    self.oom.set()
        self.over.set()


@contextmanager
def _listening(client: docker.DockerClient, id: str) -> Iterator[_News]:
    """News of a container. A `kill` among them did not come from inside."""
    news = _News()
    events = client.events(
        since=0, filters={"container": id, "event": ["die", "kill", "oom"]}, decode=True
    )
    threading.Thread(target=news.listen, args=[events], daemon=True).start()
    try:
        yield news
    finally:
        events.close()


@contextmanager
def _attached(container: Container) -> Iterator[socket.socket]:
    """Standard output and error of a container that has not begun yet.

    Must be closed before the container is killed: the engine waits for who does not read.
    """
    stream = container.attach_socket(params={"stdout": 1, "stderr": 1, "stream": 1})
    try:
        yield getattr(stream, "_sock", stream)  # with a timeout, its file could not be read on
    finally:
        with suppress(OSError):
            getattr(stream, "_sock", stream).shutdown(socket.SHUT_RDWR)
        stream.close()


def _infrastructure(error: BaseException) -> End:
    logger.warning("The engine failed", exc_info=error)
    return End(Outcome.INFRASTRUCTURE, f"The engine that runs models failed: {error}"[:500])


def _command(
    model: Runnable, image: Mapping[str, Any], threads: int
) -> tuple[list[str] | None, list[str] | None]:
    """Entrypoint and command; None: the image's own."""
    if model.folder:
        return None, written(model, folder=FOLDER, inputs=INPUTS, threads=threads)
    if model.adapter != "jsonl":
        return shimmed(model, image, shim=SHIM, inputs=INPUTS)
    return None, None
