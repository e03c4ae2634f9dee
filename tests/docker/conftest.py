"""The engine of this machine, and hostile models on it."""

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from dynabench.operations.attacks.bench import Bench
from evaluation.contract import BASE_IMAGE
from evaluation.isolation.sandbox.images import has_image

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
ENGINE = "/var/run/docker.sock"
BY_CHANCE = os.urandom  # before tests seed it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("docker")


@pytest.fixture(autouse=True)
def _names_of_this_run(_seeded, monkeypatch):
    """Another checkout may run the same test on this engine under other names."""
    monkeypatch.setattr(os, "urandom", BY_CHANCE)


@pytest.fixture(scope="session")
def bench(tmp_path_factory) -> Iterator[Bench]:
    """Runs models; all that it made is removed at the end."""
    if not has_image(BASE_IMAGE):
        subprocess.run([ROOT / "scripts/runtime_image.sh", "--base"], check=True)
    with closing(Bench(tmp_path_factory.mktemp("bench"))) as bench:
        yield bench
        assert not bench.list_leftover_containers()


class Wire:
    """Stands between us and the engine; when it is cut, the engine is gone for us."""

    def __init__(self, path: Path) -> None:
        self.address = f"unix://{path}"
        self._ends: list[socket.socket] = []
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(path))
        self._door.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._door.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(ENGINE)
                self._ends += near, far
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=[one, other], daemon=True).start()

    def cut(self) -> None:
        """Every connection breaks; new ones are made again."""
        for end in list(self._ends):  # not those that are made meanwhile
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """The engine is gone for good."""
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self.cut()


def _pump(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)


@pytest.fixture
def wire(tmp_path, monkeypatch) -> Iterator[Wire]:
    """The way to the engine, for this test alone."""
    with closing(Wire(tmp_path / "engine.sock")) as wire:
        monkeypatch.setenv("DOCKER_HOST", wire.address)
        yield wire
