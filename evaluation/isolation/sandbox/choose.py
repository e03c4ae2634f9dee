"""Choose the runner of a model. Docker's library is imported only where it is installed."""

from collections.abc import Callable

from core.env import read_env_bool
from evaluation.contract import NotNow, Runnable
from evaluation.isolation.sandbox.monitor import Runner
from evaluation.isolation.sandbox.process import ProcessRunner

NO_ENGINE_MESSAGE = "It waits for a worker with a container engine (Docker)."


class NoEngine(NotNow):
    """Raised when a model needs a container but no container engine answers."""


def has_engine() -> bool:
    """Return whether Docker's library is installed and an engine answers."""
    try:
        from evaluation.isolation.sandbox import engine  # needs Docker's library
    except ModuleNotFoundError:
        return False
    return engine.find_engine() is not None


def is_sandbox_required() -> bool:
    """Return whether this site runs submitted models only in the sandbox."""
    return read_env_bool("SANDBOX_REQUIRED")


def choose_runner(
    model: Runnable, key: str, name: str | None = None, read_more: Callable[[], bytes] | None = None
) -> Runner:
    """Return the runner with this name, `docker` or `process`; without a name, choose one.

    The sandbox is chosen if an engine answers. Folders of weights contain no code. So without an
    engine, or without the image in which they run, a process of ours reads them, unless the site
    requires the sandbox. key: identifies this attempt in the sandbox. read_more: see
    `DockerRunner`; only with the name `docker`. Raises NoEngine.
    """
    if name != "process" and has_engine():
        from evaluation.isolation.sandbox import containers, images

        if name or model.image or model.gpu or images.has_image(containers.RUNTIME_IMAGE):
            return containers.DockerRunner(key, read_more)
    if model.image or model.gpu or name == "docker" or is_sandbox_required():
        raise NoEngine(NO_ENGINE_MESSAGE)
    return ProcessRunner()
