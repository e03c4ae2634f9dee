"""Parts of an installation that a test starts, stops and starts again."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

POSTGRES = Path("/usr/lib/postgresql")
PATIENCE = 120  # seconds; the machine may be busy
_tried = count(16 * os.getpid())  # lanes run the same tests at the same time


def free_port() -> int:
    """A port that nobody listens on, below those that connections get by chance meanwhile."""
    while True:
        port = 20_000 + next(_tried) % 10_000
        with suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            return port


def wait_for(port: int) -> None:
    """Until somebody listens there."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < end, f"nobody listens at {port}"
            time.sleep(0.05)
        else:
            return


class Redis:
    """A Redis server of its own, without a disk."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Serve, empty."""
        command = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_for(self.port)

    def stop(self) -> None:
        """Be gone at once."""
        self._process.kill()
        self._process.wait()


@contextmanager
def redis_server() -> Iterator[Redis]:
    """One as long as the context lasts."""
    server = Redis()
    try:
        yield server
    finally:
        server.stop()


class Postgres:
    """A PostgreSQL server of its own, whose files lie in a folder of which all above are open."""

    def __init__(self, folder: Path) -> None:
        self.port, self._folder = free_port(), folder
        self.url = f"postgres://dynabench@127.0.0.1:{self.port}/postgres"
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            shutil.chown(folder, "postgres")
        self._run(
            "initdb", "-U", "dynabench", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"
        )
        self.start()

    def start(self) -> None:
        """Serve what is in the folder."""
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run("pg_ctl", "-w", "-l", f"{self._folder}/log", "-o", options, "start")

    def stop(self) -> None:
        """Break off all that is under way."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        path = sorted(POSTGRES.glob(f"*/bin/{program}"))[-1]
        as_whom = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        command = [*as_whom, str(path), "-D", f"{self._folder}/data", *arguments]
        subprocess.run(command, cwd=self._folder, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def postgres_server() -> Iterator[Postgres]:
    """One as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        server = Postgres(Path(folder))
        try:
            yield server
        finally:
            server.stop()


def are_installed() -> bool:
    """Whether both servers can be started."""
    return bool(shutil.which("redis-server") and any(POSTGRES.glob("*/bin/initdb")))
