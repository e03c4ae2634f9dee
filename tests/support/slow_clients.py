"""Clients that never finish, on loopback, and a server for them."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.support.live import PATIENCE, ROOT

PATIENT = """
import sys
sys.path.insert(0, {root!r})
from core.web.web_server import connection, limits, outlet, worker
for name, value in {limits!r}.items():
    assert hasattr(limits, name), name
    for module in (connection, limits, outlet, worker):
        if hasattr(module, name):
            setattr(module, name, value)
exec(open({settings!r}).read())
"""
NEVER = {"HEAD_SECONDS": 9000.0, "BODY_GRACE_SECONDS": 9000.0, "SEND_GRACE_SECONDS": 9000.0}
NEVER |= {"UPLOAD_GRACE_SECONDS": 9000.0, "STALL_SECONDS": 9000.0}
"""Limits under which no slow client is ever given up, so that no test depends on the clock."""


def settings_with(folder: Path, **limits: float) -> Path:
    """The site's settings of gunicorn, with other limits."""
    path = folder / "gunicorn.py"
    settings = str(ROOT / "gunicorn.conf.py")
    path.write_text(PATIENT.format(root=str(ROOT), limits=limits, settings=settings))
    return path


@contextmanager
def small_site(folder: Path, *options: str, **limits: float) -> Iterator["Server"]:
    """gunicorn with `tests/support/small_site.py`, as its options say; its log is in `folder`."""
    config = settings_with(folder, **limits)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=512))
        command = [sys.executable, "-m", "gunicorn", "tests.support.small_site"]
        command += ["--config", str(config), "--bind", f"fd://{listener.fileno()}"]
        command += ["--threads", "4", "--graceful-timeout", "10"]
        log = stack.enter_context((folder / "log").open("wb"))
        process = subprocess.Popen(
            [*command, *options], cwd=ROOT, pass_fds=[listener.fileno()], stdout=log, stderr=log
        )
        try:
            yield Server(listener.getsockname()[1], process, folder / "log")
        finally:
            process.send_signal(signal.SIGINT)  # at once: some clients never end
            process.wait(PATIENCE)


class Server:
    def __init__(self, port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.port, self.process, self.log = port, process, log

    def connect(self, *, small_window: bool = False) -> socket.socket:
        """A connection; with a small window, a client that does not read holds an answer up."""
        client = socket.socket()
        if small_window:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", self.port))
        return client

    def ask(self, request: bytes) -> bytes:
        """All that is answered until the server closes."""
        with self.connect() as client:
            client.sendall(request)
            return read_all(client)


def read_all(client: socket.socket) -> bytes:
    """All that comes until the end, or until the connection breaks."""
    found = bytearray()
    with suppress(ConnectionError):
        while data := client.recv(2**20):
            found += data
    return bytes(found)


def read_answer(client: socket.socket) -> tuple[int, dict[str, object]]:
    """The status and the JSON of one answer with a length; what follows it stays unread."""
    head = b""
    while b"\r\n\r\n" not in head:
        byte = client.recv(1)
        assert byte, head
        head += byte
    lines = head.decode().lower().split("\r\n")
    (length,) = (int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
    body = b""
    while len(body) < length:
        body += client.recv(length - len(body))
    return int(lines[0].split()[1]), json.loads(body) if body.startswith(b"{") else {}


def is_open(client: socket.socket) -> bool:
    """Whether the server has neither answered nor closed."""
    client.setblocking(False)
    try:
        client.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        client.settimeout(PATIENCE)
    return False


def until_closed(client: socket.socket) -> bytes:
    """What is said before the server closes; fails if it does not."""
    end = time.monotonic() + PATIENCE
    client.settimeout(PATIENCE)
    said = read_all(client)
    assert time.monotonic() < end
    return said


def has_failed(client: socket.socket) -> bool:
    """Whether the server has reset the connection, whatever was not read."""
    return client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
