"""Parts of an installation that a test starts, stops and starts again."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 30  # seconds


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


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
