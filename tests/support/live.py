"""The processes of a real installation, on the database of the tests."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60  # seconds in which a process has started or ended; the machine may be busy
# What was killed is done again after its lease of two minutes and a sweep, on a busy machine.
LONG_PATIENCE = 420
AWAY = (OperationalError, InterfaceError)


def database_url() -> str:
    """The database of the tests, as other processes find it."""
    at = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{at['NAME']}"
    who = urllib.parse.quote(at["USER"]) + ":" + urllib.parse.quote(at["PASSWORD"])
    return f"postgres://{who}@{at['HOST']}:{at['PORT']}/{at['NAME']}"


def environment(home: Path, database: str = "") -> dict[str, str]:
    """What makes another process part of the tests' installation; no container engine is there."""
    return {
        **os.environ,
        "DATABASE_URL": database or database_url(),
        "DYNABENCH_HOME": str(home),
        "SECRET_KEY": settings.SECRET_KEY,
        "DEBUG": "1",
        "DOCKER_HOST": f"unix://{home}/none.sock",
    }


@contextmanager
def web_server(
    home: Path, root: Path = ROOT, database: str = "", options: Sequence[str] = ()
) -> Iterator[str]:
    """Gives its address when it answers. root: of the code, which a reload reads again.

    database: the address of another one than the tests'. options: of gunicorn.
    """
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        web = ["-m", "gunicorn", "dynabench.wsgi", "--bind", f"fd://{listener.fileno()}"]
        web += ["--threads", "8", "--no-control-socket", "--pid", str(home / "web.pid")]
        web += options
        files = (listener.fileno(),)
        stack.enter_context(_process("web", web, home, *files, root=root, database=database))
        _wait_for(url, home)
        yield url


def queue_worker(home: Path) -> AbstractContextManager[None]:
    return _process("queue", [str(ROOT / "manage.py"), "qcluster"], home)


@contextmanager
def _process(
    name: str, command: list[str], home: Path, *files: int, root: Path = ROOT, database: str = ""
) -> Iterator[None]:
    with (home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=root, pass_fds=files,
            env=environment(home, database) | {"PWD": str(root)},
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _wait_for(url: str, home: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            httpx.get(f"{url}/healthz/", timeout=PATIENCE, verify=False)  # no TLS, and quick
            return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError((home / "web.log").read_text())


def wait_until(is_true: Callable[[], bool], pause: float = 0.2) -> None:
    """Ask again, after a pause in seconds, until it is so; a database that is away is no answer."""
    end = time.monotonic() + LONG_PATIENCE
    while time.monotonic() < end:
        try:
            if is_true():
                return
        except AWAY:
            connection.close()
        time.sleep(pause)
    raise AssertionError("It did not come about.")


class Postgres:
    """The server of the tests, which can be killed and is started again as it was."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SHOW data_directory")
            self._pid_file = Path(cursor.fetchone()[0], "postmaster.pid")
        server = Path("/proc", str(self._pid()))
        self._command = (server / "cmdline").read_bytes().decode().rstrip("\0").split("\0")
        self._command[0] = str((server / "exe").readlink())
        self._user = server.stat().st_uid

    def _pid(self) -> int:
        return int(self._pid_file.read_text().split()[0])

    def kill(self) -> None:
        os.kill(self._pid(), signal.SIGKILL)
        # One that another object of this class started would keep its number, and its lock with it.
        with suppress(ChildProcessError):
            os.waitpid(self._pid(), 0)
        connection.close()

    def start(self) -> None:
        """As soon as those who served the old one are gone."""

        def answers() -> bool:
            if self._process.poll() is not None:
                self._start()
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            return True

        self._start()
        wait_until(answers)

    def _start(self) -> None:
        nothing = subprocess.DEVNULL
        self._process = subprocess.Popen(
            self._command, user=self._user, stdout=nothing, stderr=nothing,
            cwd=self._pid_file.parent, start_new_session=True,
        )  # fmt: skip


def family(pid: int) -> list[int]:
    """Every process below this one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [one for child in map(int, children) for one in (child, *family(child))]
