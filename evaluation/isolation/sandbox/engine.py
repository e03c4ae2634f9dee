"""Connect to the Docker engine of this machine."""

from contextlib import closing
from typing import NamedTuple

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException

CALL_SECONDS = 60  # for one call
EngineError = (DockerException, RequestException, OSError)


class Engine(NamedTuple):
    """The facts that the Docker engine of this machine reports."""

    version: str
    cgroup: str  # "1" or "2"
    arch: str  # as in the names of images: amd64, arm64
    has_runsc: bool
    has_seccomp: bool
    cpus: int
    root: str  # the folder of its images


def connect_to_engine() -> docker.DockerClient:
    """Return a client of the engine that DOCKER_HOST names. Raises one of EngineError."""
    return docker.from_env(timeout=CALL_SECONDS)


def find_engine() -> Engine | None:
    """Return what the engine reports about itself; None if no engine answers."""
    try:
        with closing(connect_to_engine()) as client:
            version, info = client.version(), client.info()
    except EngineError:
        return None
    return Engine(
        version=version["Version"],
        cgroup=info.get("CgroupVersion", "1"),
        arch=version["Arch"],
        has_runsc="runsc" in info["Runtimes"],
        has_seccomp=any("seccomp" in option for option in info["SecurityOptions"]),
        cpus=info["NCPU"],
        root=info["DockerRootDir"],
    )
