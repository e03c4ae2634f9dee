"""What a model is run with on this machine."""

from evaluation.contract import Runnable, Runner
from evaluation.sandbox import containers
from evaluation.sandbox.process import ProcessRunner

NO_ENGINE = "It waits for a worker with a container engine (Docker)."


class NoEngine(Exception):
    """No container engine answers on this machine, and the model runs in containers only."""


def runner_for(model: Runnable, key: str) -> Runner:
    """The sandbox, where an engine answers; `key` names this attempt on it.

    Folders of weights hold no code. Where there is no engine, or the image in which they run was
    not built, a process of ours reads them. Raises NoEngine for an image.
    """
    has_engine = containers.engine() is not None
    if model.image and not has_engine:
        raise NoEngine(NO_ENGINE)
    if has_engine and (model.image or containers.has_image(containers.RUNTIME_IMAGE)):
        return containers.DockerRunner(key)
    return ProcessRunner()
