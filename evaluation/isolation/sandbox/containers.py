"""Run submitted models in Docker containers, without network or privileges, on a read-only disk.

Only this module, `engine` and `images` import Docker's library, which only workers have.
docs/evaluation.md says how a run may end, docs/threat-model.md which risks remain.
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

from evaluation.contract import BeatCallback, Ending, LineCallback, Outcome, Runnable
from evaluation.isolation.sandbox import metric_script
from evaluation.isolation.sandbox.engine import EngineError, connect_to_engine, find_engine
from evaluation.isolation.sandbox.harness import shim
from evaluation.isolation.sandbox.harness.arguments import (
    STDIN,
    build_command_line,
    build_shim_command,
)
from evaluation.isolation.sandbox.images import ImageRefused
from evaluation.isolation.sandbox.limits import LimitExceeded, Limits
from evaluation.isolation.sandbox.monitor import CHECK_INTERVAL_SECONDS, READ_BYTES, Monitor
from evaluation.isolation.sandbox.output import STDERR, FrameParser
from evaluation.isolation.sandbox.permissions import make_readable
from evaluation.isolation.sandbox.usage import find_cgroup

logger = logging.getLogger(__name__)

RUNTIME_IMAGE = "dynabench-runtime:latest"
CUDA_IMAGE = "dynabench-runtime-cuda:latest"  # for folders that run on a GPU
SANDBOX_LABEL = (
    "org.dynabench.sandbox"  # its value is the run's key, which is also the container's name
)
NAME_PREFIX = "dynabench-sandbox-"
SECCOMP_PROFILE = (Path(__file__).parent / "seccomp.json").read_text()
INPUTS_PATH, FOLDER_PATH, SHIM_PATH = (
    "/input/examples.jsonl",
    "/model",
    "/dynabench/shim.py",
)  # in the sandbox
ADAPTER_SCRIPTS = {"metric": metric_script}  # by adapter; others use the shim
LORA_FOLDER = "/adapter"
GPU_SUFFIX = "-gpu"
NOBODY_USER = "65534:65534"
HOME_FOLDER = "/tmp"  # noqa: S108 (inside the sandbox)
DEATH_EVENT_SECONDS = 10.0  # after its output ended
OOM_SECONDS = 1.0  # after it died
CHILD_OOM_SECONDS = 0.3  # after a normal exit, for a late event about a child
SIGKILL_CODE = 128 + signal.SIGKILL
NO_IMAGE_MESSAGE = "The image is not on this worker."
NO_RUNTIME_MESSAGE = (
    f"The image {RUNTIME_IMAGE} is missing: the operator builds it with scripts/runtime_image.sh."
)
NO_DRIVER_TEXT = "device driver"  # in the error of an engine that cannot provide a GPU
NO_GPU_MESSAGE = (
    "The engine cannot give a GPU: the operator installs NVIDIA's container toolkit, or sets "
    "EVALUATION_GPUS to 0."
)
NO_CUDA_MESSAGE = (
    f"The image {CUDA_IMAGE} is missing: the operator builds it with "
    "scripts/runtime_image.sh --cuda."
)
KILLED_SENTENCE = "The container was ended from outside, or the engine was."
CHILD_OOM_SENTENCE = (
    "A process that the model had started was ended because it needed more memory than there was."
)


class OwnContainer(NamedTuple):
    """A container that was created for a run."""

    name: str
    key: str
    is_running: bool


def list_own_containers(prefix: str = "") -> list[OwnContainer]:
    """Return the containers on this engine whose key has this prefix. Raises one of EngineError.

    Name and label must match, because an image can set any label but cannot name its container.
    """
    with closing(connect_to_engine()) as client:
        rows = client.api.containers(all=True, filters={"label": SANDBOX_LABEL})
    own_containers = []
    for row in rows:
        key, is_running = row["Labels"][SANDBOX_LABEL], row["State"] == "running"
        names = [name.removeprefix("/") for name in row["Names"]]
        if NAME_PREFIX + key in names and key.startswith(prefix):
            own_containers.append(OwnContainer(NAME_PREFIX + key, key, is_running))
    return own_containers


def remove_container(name: str) -> None:
    """Stop and remove a container if it exists. Raises one of EngineError."""
    with closing(connect_to_engine()) as client, suppress(NotFound):
        # `v`: also removes its anonymous volumes, which would otherwise stay on the disk.
        client.api.remove_container(name, v=True, force=True)


class DockerRunner:
    """A runner that runs one attempt of a model in a sandboxed container.

    key: identifies the attempt on this engine, in letters, digits and dashes. Begin it with the
    installation's key (see `list_own_containers`).
    read_more: returns further examples as whole lines, or empty bytes. It is called five times a
    second, and the model reads these lines instead of a file. Only for folders of weights and for
    images with our shim; None for other models.
    """

    def __init__(self, key: str, read_more: Callable[[], bytes] | None = None) -> None:
        self.key, self._read_more = key, read_more
        self._engine = find_engine()
        self.name = "docker"
        if self._engine and self._engine.has_runsc:
            self.name = "docker-runsc"

    def run(
        self,
        model: Runnable,
        inputs: Path,
        limits: Limits,
        *,
        take: LineCallback,
        beat: BeatCallback,
    ) -> Ending:
        """Run a model; see `Runner.run`. Leaves no container, unless the engine fails."""
        if model.gpu and not self.name.endswith(GPU_SUFFIX):  # not comparable with runs on CPUs
            self.name += GPU_SUFFIX
        monitor = _ContainerMonitor(limits, take, beat, is_trusted=model.image is None)
        monitor.read_more = self._read_more

        def watch_run() -> Ending:
            try:
                if not self._engine:
                    raise DockerException("no Docker engine answered")
                with closing(monitor.call_patiently(connect_to_engine)) as client:
                    return self._run_model(client, monitor, model, inputs)
            except EngineError as error:
                # The heartbeat's own error is not the engine's, though its class may be the same.
                if error is monitor.beat_error:
                    raise
                logger.warning("The engine failed", exc_info=error)
                sentence = f"The engine that runs models failed: {error}"[:500]
                return Ending(Outcome.INFRASTRUCTURE, sentence=sentence)

        return monitor.monitor_run(watch_run)

    def _run_model(
        self,
        client: docker.DockerClient,
        monitor: "_ContainerMonitor",
        model: Runnable,
        inputs: Path,
    ) -> Ending:
        """Find the image, make the model's folders readable, and run the model."""
        if model.image:
            name, error_sentence = model.image, NO_IMAGE_MESSAGE
        elif model.gpu:
            name, error_sentence = CUDA_IMAGE, NO_CUDA_MESSAGE
        else:
            name, error_sentence = RUNTIME_IMAGE, NO_RUNTIME_MESSAGE
        try:
            image = client.images.get(name)
        except ImageNotFound:
            return Ending(Outcome.INFRASTRUCTURE, sentence=error_sentence)
        with ExitStack() as stack:

            def open_folder(folder: Path | None) -> Path | None:
                if folder is None:
                    return None
                return stack.enter_context(
                    make_readable(folder, inputs.parent, monitor.call_patiently)
                )

            folder, lora = open_folder(model.folder), open_folder(model.lora)
            readable_model = replace(model, folder=folder, lora=lora)
            return self._run_in_image(client, monitor, image, readable_model, inputs)

    def _run_in_image(
        self,
        client: docker.DockerClient,
        monitor: "_ContainerMonitor",
        image: Any,
        model: Runnable,
        inputs: Path,
    ) -> Ending:
        """Run the model in a container of the image. Removes the container at the end."""
        if not self._read_more:
            inputs.chmod(0o644)  # readable for the user `nobody`, as which the model runs
        options = self._build_options(image, model, inputs, monitor.limits)
        try:
            with monitor.translate_refusals():
                container = monitor.call_patiently(
                    lambda: _create_container(client, image.id, options)
                )
            return monitor.watch(client, container)
        except ImageRefused as refusal:
            return Ending(Outcome.REJECTED, sentence=str(refusal))
        except APIError as error:
            if NO_DRIVER_TEXT not in str(error.explanation):
                raise
            return Ending(Outcome.INFRASTRUCTURE, sentence=NO_GPU_MESSAGE)
        finally:
            with suppress(*EngineError):  # leftovers are removed later by name
                remove_container(NAME_PREFIX + self.key)

    def _build_options(
        self, image: Any, model: Runnable, inputs: Path, limits: Limits
    ) -> dict[str, Any]:
        """Return the keyword arguments of `containers.create` for this run.

        The restrictions are the same for every model. Copies the adapter's script beside the
        inputs.
        """
        assert self._engine
        runtime = None  # the engine's default
        if self._engine.has_runsc:
            runtime = "runsc"
        # An engine refuses to provide more processors than it has.
        limits = replace(limits, cpus=min(limits.cpus, self._engine.cpus))
        mounts, source = [], STDIN
        if not self._read_more:
            source = INPUTS_PATH
            mounts.append(Mount(INPUTS_PATH, str(inputs.resolve()), type="bind", read_only=True))
        entrypoint, command = _build_command(model, image.attrs["Config"], source, limits.threads)
        if model.adapter != "jsonl":
            # Copied to a path that the engine can see even if this process runs in a container.
            source_file = str(ADAPTER_SCRIPTS.get(model.adapter, shim).__file__)
            script = str(shutil.copy(source_file, inputs.resolve().parent))
            mounts.append(Mount(SHIM_PATH, script, type="bind", read_only=True))
        for target, folder in ((FOLDER_PATH, model.folder), (LORA_FOLDER, model.lora)):
            if folder:
                mounts.append(Mount(target, str(folder.resolve()), type="bind", read_only=True))
        volumes = image.attrs["Config"].get("Volumes") or ()
        return {
            "name": NAME_PREFIX + self.key,
            "labels": {SANDBOX_LABEL: self.key},
            "entrypoint": entrypoint,
            "command": command,
            "stdin_open": self._read_more is not None,
            "environment": {
                "HOME": HOME_FOLDER,
                "LANG": "C.UTF-8",
                "OMP_NUM_THREADS": str(limits.threads),
            },
            "use_config_proxy": False,  # the model gets no address of this network
            "hostname": "sandbox",
            "user": NOBODY_USER,
            "network_mode": "none",
            "network_disabled": True,
            "read_only": True,
            "mounts": mounts,
            "ipc_mode": "private",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true", f"seccomp={SECCOMP_PROFILE}"],
            **limits.list_container_options(HOME_FOLDER, volumes, is_gvisor=runtime is not None),
            "healthcheck": {"test": ["NONE"]},  # an image's own would run beside the model
            "log_config": LogConfig(type="none"),  # we keep the log's end ourselves
            "init": True,  # reaps children that a model does not wait for
            "runtime": runtime,
            "device_requests": _build_devices(model.gpu),
        }


class _ContainerMonitor(Monitor):
    """A monitor of a run in a container, which it observes through the engine."""

    read_more: Callable[[], bytes] | None = None

    @contextmanager
    def translate_refusals(self) -> Iterator[None]:
        """Convert the engine's refusal to create or start a submitted image into ImageRefused."""
        try:
            yield
        except NotFound:  # it was removed meanwhile
            raise
        except APIError as error:
            if self.is_trusted or not error.is_client_error():
                raise
            raise ImageRefused(f"The image cannot be started: {error.explanation}") from None

    def watch(self, client: docker.DockerClient, container: Container) -> Ending:
        """Start a container and monitor it until it ends; return how it ended.

        Raises ImageRefused, InvalidOutput, LimitExceeded and EngineError. Propagates exceptions of
        `beat`.
        """
        with _record_events(client, container.id) as container_events:
            with _attach_streams(container) as output:
                with self.translate_refusals():
                    self.call_patiently(container.start)
                self.start_clock()
                container.reload()
                cgroup = find_cgroup(container.attrs["State"]["Pid"], container.id)
                if cgroup:
                    self.take_sample = cgroup.sample
                limit_error = self._read_output(output)
            self.call_patiently(container.reload)  # fails when the engine, not the model, is silent
            if limit_error:
                raise limit_error
            self.call_patiently(lambda: container_events.ended.wait(DEATH_EVENT_SECONDS))
            if "die" not in container_events.actions or "kill" in container_events.actions:
                return Ending(Outcome.INFRASTRUCTURE, sentence=KILLED_SENTENCE)
            container.reload()
            state = container.attrs["State"]
            exit_code, is_oom = state["ExitCode"], state["OOMKilled"]
            if not exit_code:
                self.process_last_line()  # the model may have died in the middle of a line
            self.stop_clock()
            if not is_oom and exit_code in (0, SIGKILL_CODE):
                seconds = CHILD_OOM_SECONDS
                if exit_code:
                    seconds = OOM_SECONDS
                is_oom = container_events.out_of_memory.wait(seconds)
        if exit_code and is_oom:
            return self.build_oom_ending()
        if exit_code:
            return self.build_failed_ending(exit_code)
        warnings: tuple[str, ...] = ()
        if is_oom:  # a child ran out of memory, but the model itself continued
            warnings = (CHILD_OOM_SENTENCE,)
        return Ending(Outcome.OK, warnings=warnings)

    def _read_output(self, output: socket.socket) -> LimitExceeded | None:
        """Process the model's output until it ends; return the limit that it exceeded, if any."""
        output.settimeout(CHECK_INTERVAL_SECONDS)
        frames, unsent_bytes = FrameParser(), b""
        try:
            while True:
                self.check_limits()
                if self.read_more:
                    unsent_bytes = _send_bytes(output, unsent_bytes or self.read_more())
                try:
                    data = output.recv(READ_BYTES)
                except TimeoutError:
                    continue
                if not data:
                    return None
                for stream, block in frames.feed(data):
                    if stream == STDERR:
                        self.tail.add(block)
                    else:
                        self.process_output(block)
        except LimitExceeded as error:
            return error


def _build_devices(gpu: str) -> list[DeviceRequest]:
    """Return the device request that gives the container this one GPU; empty without a GPU."""
    if not gpu:
        return []
    return [DeviceRequest(device_ids=[gpu], capabilities=[["gpu"]])]


def _create_container(
    client: docker.DockerClient, image: str, options: dict[str, Any]
) -> Container:
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
        self.ended, self.out_of_memory = threading.Event(), threading.Event()

    def listen(self, events: Iterator[dict[str, Any]]) -> None:
        """Record each event until the engine's stream ends."""
        with suppress(*EngineError, ValueError):
            for event in events:
                self.actions.add(event["Action"])
                if event["Action"] == "die":
                    self.ended.set()
                elif event["Action"] == "oom":  # may be reported after the death that it caused
                    self.out_of_memory.set()
        self.ended.set()


@contextmanager
def _record_events(client: docker.DockerClient, container_id: str) -> Iterator[_ContainerEvents]:
    """Record the container's events while the block runs, and yield them.

    A `kill` event means that something outside the container stopped it.
    """
    container_events = _ContainerEvents()
    # With `since`, events from before the stream was opened are also sent.
    events = client.events(
        since=0, filters={"container": container_id, "event": ["die", "kill", "oom"]}, decode=True
    )
    threading.Thread(target=container_events.listen, args=[events], daemon=True).start()
    try:
        yield container_events
    finally:
        events.close()


@contextmanager
def _attach_streams(container: Container) -> Iterator[socket.socket]:
    """Yield a socket with the standard streams of a container that has not started yet.

    Close it before any other request, because the engine waits for slow readers.
    """
    stream = container.attach_socket(params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
    try:
        yield getattr(stream, "_sock", stream)  # after a timeout, its file could not be read
    finally:
        with suppress(OSError):
            getattr(stream, "_sock", stream).shutdown(socket.SHUT_RDWR)
        stream.close()


def _send_bytes(stream: socket.socket, data: bytes) -> bytes:
    """Send as many bytes as the receiver accepts now, and return the rest."""
    try:
        while data:
            data = data[stream.send(data) :]
    except TimeoutError:  # it reads slowly, so the rest is sent later
        return data
    except ConnectionError:  # it has ended meanwhile, and the end of its output says so
        return b""
    return data


def _build_command(
    model: Runnable, image: Mapping[str, Any], inputs: str, threads: int
) -> tuple[list[str] | None, list[str] | None]:
    """Return entrypoint and command; None stands for the image's own."""
    if model.adapter == "metric":
        return ["python3", "-I", SHIM_PATH, f"{FOLDER_PATH}/metric.py", INPUTS_PATH], None
    if model.folder:
        lora = ""
        if model.lora:
            lora = LORA_FOLDER
        return None, build_command_line(
            model, folder=FOLDER_PATH, inputs=inputs, threads=threads, lora=lora
        )
    if model.adapter != "jsonl":
        return build_shim_command(model, image, shim=SHIM_PATH, inputs=inputs)
    return None, None
