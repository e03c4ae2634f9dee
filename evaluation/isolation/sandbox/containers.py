"""Docker containers for submitted models, which get nothing and reach nothing.

Only this module, `engine` and `images` import Docker's library, which only workers have.
docs/evaluation.md says how a run may end, docs/threat-model.md which risk is left.
"""

import logging
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, LogConfig, Mount

from evaluation.contract import Beat, Ending, Outcome, Runnable, Take
from evaluation.isolation.sandbox import metric_script
from evaluation.isolation.sandbox.engine import EngineError, connect, find_engine
from evaluation.isolation.sandbox.harness import shim
from evaluation.isolation.sandbox.harness.arguments import STDIN, command_line, shim_command
from evaluation.isolation.sandbox.images import ImageRefused
from evaluation.isolation.sandbox.limits import LimitExceeded, Limits
from evaluation.isolation.sandbox.monitor import LOOK_SECONDS, READ_BYTES, Monitor
from evaluation.isolation.sandbox.output import STDERR, Frames
from evaluation.isolation.sandbox.permissions import make_readable
from evaluation.isolation.sandbox.usage import cgroup_of

logger = logging.getLogger(__name__)

RUNTIME_IMAGE = "dynabench-runtime:latest"
CUDA_IMAGE = "dynabench-runtime-cuda:latest"  # for folders that run on a GPU
LABEL = "org.dynabench.sandbox"  # its value is the key of the run, and so is the container's name
PREFIX = "dynabench-sandbox-"
SECCOMP = (Path(__file__).parent / "seccomp.json").read_text()
INPUTS, FOLDER, SHIM = "/input/examples.jsonl", "/model", "/dynabench/shim.py"  # in the sandbox
ADAPTER_SCRIPTS = {"metric": metric_script}  # of adapters; of the others the shim
LORA_FOLDER = "/adapter"
GPU_SUFFIX = "-gpu"
NOBODY_USER = "65534:65534"
HOME = "/tmp"  # noqa: S108 (inside the sandbox)
DEATH_EVENT_SECONDS = 10.0  # after its output ended
OOM_SECONDS = 1.0  # after it died
CHILD_OOM_SECONDS = 0.3  # after it ended well, for news of a child that the engine tells late
SIGKILL_CODE = 128 + signal.SIGKILL
NO_IMAGE = "The image is not on this worker."
NO_RUNTIME = (
    f"The image {RUNTIME_IMAGE} is missing: the operator builds it with scripts/runtime_image.sh."
)
NO_DRIVER_TEXT = "device driver"  # in what an engine says that cannot give a GPU
NO_GPU = (
    "The engine cannot give a GPU: the operator installs NVIDIA's container toolkit, or sets "
    "EVALUATION_GPUS to 0."
)
NO_CUDA = (
    f"The image {CUDA_IMAGE} is missing: the operator builds it with "
    "scripts/runtime_image.sh --cuda."
)
KILLED_SENTENCE = "The container was ended from outside, or the engine was."
CHILD_OOM = (
    "A process that the model had started was ended because it needed more memory than there was."
)


class OwnContainer(NamedTuple):
    """A container that was created for a run."""

    name: str
    key: str
    is_running: bool


def list_ours(prefix: str = "") -> list[OwnContainer]:
    """Return the containers on this engine whose key has this prefix. Raises one of EngineError.

    Name and label must match, because an image can set any label but cannot name its container.
    """
    with closing(connect()) as client:
        rows = client.api.containers(all=True, filters={"label": LABEL})
    own_containers = []
    for row in rows:
        key, is_running = row["Labels"][LABEL], row["State"] == "running"
        names = [name.removeprefix("/") for name in row["Names"]]
        if PREFIX + key in names and key.startswith(prefix):
            own_containers.append(OwnContainer(PREFIX + key, key, is_running))
    return own_containers


def remove_container(name: str) -> None:
    """Stop and remove a container if it exists. Raises one of EngineError."""
    with closing(connect()) as client, suppress(NotFound):
        client.api.remove_container(name, v=True, force=True)


class DockerRunner:
    """A runner that runs one attempt of a model in a sandboxed container.

    key: identifies the attempt on this engine, in letters, digits and dashes. Begin it with the
    installation's key (see `list_ours`).
    read_more: for a folder, or an image with our shim, returns further examples as whole lines, or
    nothing. It is called five times a second, and the model reads these lines instead of a file.
    """

    def __init__(self, key: str, read_more: Callable[[], bytes] | None = None) -> None:
        self.key, self._more = key, read_more
        self._engine = find_engine()
        self.name = "docker"
        if self._engine and self._engine.has_runsc:
            self.name = "docker-runsc"

    def run(
        self, model: Runnable, inputs: Path, limits: Limits, *, take: Take, beat: Beat
    ) -> Ending:
        """Run a model as `Runner.run` does. Leaves no container, unless the engine fails."""
        if model.gpu and not self.name.endswith(GPU_SUFFIX):  # nobody compares it with processors
            self.name += GPU_SUFFIX
        monitor = _Monitor(limits, take, beat, trusted=model.image is None)
        monitor.more = self._more

        def watched() -> Ending:
            try:
                if not self._engine:
                    raise DockerException("no Docker engine answered")
                with closing(monitor.patiently(connect)) as client:
                    return self._run(client, monitor, model, inputs)
            except EngineError as error:
                if error is monitor.beat_error:
                    raise
                logger.warning("The engine failed", exc_info=error)
                sentence = f"The engine that runs models failed: {error}"[:500]
                return Ending(Outcome.INFRASTRUCTURE, sentence=sentence)

        return monitor.ending(watched)

    def _run(
        self, client: docker.DockerClient, monitor: "_Monitor", model: Runnable, inputs: Path
    ) -> Ending:
        """Find the image, make the model's folders readable, and run the model."""
        if model.image:
            name, error_sentence = model.image, NO_IMAGE
        elif model.gpu:
            name, error_sentence = CUDA_IMAGE, NO_CUDA
        else:
            name, error_sentence = RUNTIME_IMAGE, NO_RUNTIME
        try:
            image = client.images.get(name)
        except ImageNotFound:
            return Ending(Outcome.INFRASTRUCTURE, sentence=error_sentence)
        with ExitStack() as stack:

            def open_folder(folder: Path | None) -> Path | None:
                if folder is None:
                    return None
                return stack.enter_context(make_readable(folder, inputs.parent, monitor.patiently))

            folder, lora = open_folder(model.folder), open_folder(model.lora)
            readable_model = replace(model, folder=folder, lora=lora)
            return self._run_in_image(client, monitor, image, readable_model, inputs)

    def _run_in_image(
        self,
        client: docker.DockerClient,
        monitor: "_Monitor",
        image: Any,
        model: Runnable,
        inputs: Path,
    ) -> Ending:
        """Run the model in a container of the image. Removes the container at the end."""
        if not self._more:
            inputs.chmod(0o644)  # for nobody, as whom the model runs
        options = self._options(image, model, inputs, monitor.limits)
        try:
            with monitor.refusals():
                container = monitor.patiently(lambda: _create(client, image.id, options))
            return monitor.watch(client, container)
        except ImageRefused as why:
            return Ending(Outcome.REJECTED, sentence=str(why))
        except APIError as error:
            if NO_DRIVER_TEXT not in str(error.explanation):
                raise
            return Ending(Outcome.INFRASTRUCTURE, sentence=NO_GPU)
        finally:
            with suppress(*EngineError):  # what is left is removed by name, later
                remove_container(PREFIX + self.key)

    def _options(self, image: Any, model: Runnable, inputs: Path, limits: Limits) -> dict[str, Any]:
        """Return the arguments of `containers.create`: the same for every model."""
        assert self._engine
        runtime = None  # the engine's default
        if self._engine.has_runsc:
            runtime = "runsc"
        # An engine refuses to give more processors than it has.
        limits = replace(limits, cpus=min(limits.cpus, self._engine.cpus))
        mounts, source = [], STDIN
        if not self._more:
            source = INPUTS
            mounts.append(Mount(INPUTS, str(inputs.resolve()), type="bind", read_only=True))
        entrypoint, command = _command_of(model, image.attrs["Config"], source, limits.threads)
        if model.adapter != "jsonl":
            # Copied to where the engine finds it, should this process run in a container itself.
            source_file = str(ADAPTER_SCRIPTS.get(model.adapter, shim).__file__)
            script = str(shutil.copy(source_file, inputs.resolve().parent))
            mounts.append(Mount(SHIM, script, type="bind", read_only=True))
        for target, folder in ((FOLDER, model.folder), (LORA_FOLDER, model.lora)):
            if folder:
                mounts.append(Mount(target, str(folder.resolve()), type="bind", read_only=True))
        volumes = image.attrs["Config"].get("Volumes") or ()
        return {
            "name": PREFIX + self.key,
            "labels": {LABEL: self.key},
            "entrypoint": entrypoint,
            "command": command,
            "stdin_open": self._more is not None,
            "environment": {
                "HOME": HOME,
                "LANG": "C.UTF-8",
                "OMP_NUM_THREADS": str(limits.threads),
            },
            "use_config_proxy": False,  # no address of this network for the model
            "hostname": "sandbox",
            "user": NOBODY_USER,
            "network_mode": "none",
            "network_disabled": True,
            "read_only": True,
            "mounts": mounts,
            "ipc_mode": "private",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true", f"seccomp={SECCOMP}"],
            **limits.of_container(HOME, volumes, is_gvisor=runtime is not None),
            "healthcheck": {"test": ["NONE"]},  # an image's own would run beside the model
            "log_config": LogConfig(type="none"),  # we keep the end of it
            "init": True,  # reaps the children of a model that forgets them
            "runtime": runtime,
            "device_requests": _devices(model.gpu),
        }


class _Monitor(Monitor):
    """A monitor of a run in a container, which it observes through the engine."""

    more: Callable[[], bytes] | None = None

    @contextmanager
    def refusals(self) -> Iterator[None]:
        """Convert the engine's refusal to create or start a submitted image into ImageRefused."""
        try:
            yield
        except NotFound:  # somebody removed it meanwhile
            raise
        except APIError as error:
            if self.trusted or not error.is_client_error():
                raise
            raise ImageRefused(f"The image cannot be started: {error.explanation}") from None

    def watch(self, client: docker.DockerClient, container: Container) -> Ending:
        """Start a container and monitor it until it ends; return how it ended.

        Raises ImageRefused, InvalidOutput, LimitExceeded and EngineError. Propagates exceptions of
        `beat`.
        """
        with _record_events(client, container.id) as news:
            with _attach(container) as output:
                with self.refusals():
                    self.patiently(container.start)
                self.started()
                container.reload()
                cgroup = cgroup_of(container.attrs["State"]["Pid"], container.id)
                if cgroup:
                    self.sample = cgroup.sample
                limit_error = self._read(output)
            self.patiently(container.reload)  # fails when the engine, not the model, is silent
            if limit_error:
                raise limit_error
            self.patiently(lambda: news.over.wait(DEATH_EVENT_SECONDS))
            if "die" not in news.actions or "kill" in news.actions:
                return Ending(Outcome.INFRASTRUCTURE, sentence=KILLED_SENTENCE)
            container.reload()
            state = container.attrs["State"]
            code, oom = state["ExitCode"], state["OOMKilled"]
            if not code:
                self.closed()  # a model that died may have died in the middle of a line
            self.ended()
            if not oom and code in (0, SIGKILL_CODE):
                seconds = CHILD_OOM_SECONDS
                if code:
                    seconds = OOM_SECONDS
                oom = news.oom.wait(seconds)
        if code and oom:
            return self.oom()
        if code:
            return self.failed(code)
        warnings: tuple[str, ...] = ()
        if oom:  # a child ran out of memory, but the model itself went on
            warnings = (CHILD_OOM,)
        return Ending(Outcome.OK, warnings=warnings)

    def _read(self, output: socket.socket) -> LimitExceeded | None:
        """Process the model's output until it ends; return the limit that it exceeded, if any."""
        output.settimeout(LOOK_SECONDS)
        frames, unsent = Frames(), b""
        try:
            while True:
                self.look()
                if self.more:
                    unsent = _send(output, unsent or self.more())
                try:
                    data = output.recv(READ_BYTES)
                except TimeoutError:
                    continue
                if not data:
                    return None
                for stream, part in frames.feed(data):
                    if stream == STDERR:
                        self.tail.add(part)
                    else:
                        self.wrote(part)
        except LimitExceeded as error:
            return error


def _devices(gpu: str) -> list[DeviceRequest]:
    """Return the device request that gives the container this one GPU; empty without a GPU."""
    if not gpu:
        return []
    return [DeviceRequest(device_ids=[gpu], capabilities=[["gpu"]])]


def _create(client: docker.DockerClient, image: str, options: dict[str, Any]) -> Container:
    """Create a container with these options. Raises APIError.

    Replaces a container with the same name, which is from this attempt: the engine's answer was
    lost.
    """
    try:
        return client.containers.create(image, **options)
    except APIError as error:
        if error.status_code != HTTPStatus.CONFLICT:
            raise
    remove_container(options["name"])
    return client.containers.create(image, **options)


class _ContainerEvents:
    """The engine's events about a container, recorded until the container or the engine ends."""

    def __init__(self) -> None:
        self.actions: set[str] = set()
        self.over, self.oom = threading.Event(), threading.Event()

    def listen(self, events: Iterator[dict[str, Any]]) -> None:
        """Record each event until the engine's stream ends."""
        with suppress(*EngineError, ValueError):
            for event in events:
                self.actions.add(event["Action"])
                if event["Action"] == "die":
                    self.over.set()
                elif event["Action"] == "oom":  # may be reported after the death that it caused
                    self.oom.set()
        self.over.set()


@contextmanager
def _record_events(client: docker.DockerClient, id: str) -> Iterator[_ContainerEvents]:
    """Record the container's events while the block runs, and yield them.

    A `kill` event means that something outside the container stopped it.
    """
    news = _ContainerEvents()
    # With `since`, an event that comes before the engine has opened the stream is sent, too.
    events = client.events(
        since=0, filters={"container": id, "event": ["die", "kill", "oom"]}, decode=True
    )
    threading.Thread(target=news.listen, args=[events], daemon=True).start()
    try:
        yield news
    finally:
        events.close()


@contextmanager
def _attach(container: Container) -> Iterator[socket.socket]:
    """Yield a socket with the standard streams of a container that has not started yet.

    Close it before any other request, because the engine waits for slow readers.
    """
    stream = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
    try:
        yield getattr(stream, "_sock", stream)  # with a timeout, its file could not be read on
    finally:
        with suppress(OSError):
            getattr(stream, "_sock", stream).shutdown(socket.SHUT_RDWR)
        stream.close()


def _send(stream: socket.socket, data: bytes) -> bytes:
    """Send as many bytes as the receiver accepts now, and return the rest."""
    with suppress(TimeoutError):  # it reads slowly: the rest goes with the next look
        while data:
            data = data[stream.send(data) :]
    return data


def _command_of(
    model: Runnable, image: Mapping[str, Any], inputs: str, threads: int
) -> tuple[list[str] | None, list[str] | None]:
    """Return entrypoint and command; None stands for the image's own."""
    if model.adapter == "metric":
        return ["python3", "-I", SHIM, f"{FOLDER}/metric.py", INPUTS], None
    if model.folder:
        lora = ""
        if model.lora:
            lora = LORA_FOLDER
        return None, command_line(model, folder=FOLDER, inputs=inputs, threads=threads, lora=lora)
    if model.adapter != "jsonl":
        return shim_command(model, image, shim=SHIM, inputs=inputs)
    return None, None
