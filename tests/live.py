"""The processes of a real installation, on the database of the tests."""

import os
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from django.conf import settings
from django.db import connection

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60  # seconds in which a process has started or ended; the machine may be busy


def database_url() -> str:
    """The database of the tests, as other processes find it."""
    at = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{at['NAME']}"
    who = urllib.parse.quote(at["USER"]) + ":" + urllib.parse.quote(at["PASSWORD"])
    return f"postgres://{who}@{at['HOST']}:{at['PORT']}/{at['NAME']}"


def environment(home: Path) -> dict[str, str]:
    """What makes another process part of the tests' installation; no container engine is there."""
    return {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DYNABENCH_HOME": str(home),
        "SECRET_KEY": settings.SECRET_KEY,
        "DEBUG": "1",
        "DOCKER_HOST": f"unix://{home}/none.sock",
    }


@contextmanager
def installation(home: Path, *, queue: bool = True) -> Iterator[str]:
    """A web server and a queue worker as long as the context lasts; gives the server's address."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        web = ["-m", "gunicorn", "dynabench.wsgi", "--bind", f"fd://{listener.fileno()}"]
        web += ["--worker-class", "gthread", "--threads", "8", "--no-control-socket"]
        stack.enter_context(_process("web", web, home, listener.fileno()))
        if queue:
            stack.enter_context(_process("queue", [str(ROOT / "manage.py"), "qcluster"], home))
        _wait_for(url, home)
        yield url


@contextmanager
def _process(name: str, command: list[str], home: Path, *files: int) -> Iterator[None]:
    with (home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=environment(home), pass_fds=files,
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()  # its main process only: django-q2 hangs when all of them are asked
        process.wait(PATIENCE)


def _wait_for(url: str, home: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            httpx.get(f"{url}/healthz/", timeout=PATIENCE)
            return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError((home / "web.log").read_text())
