"""An empty site on SQLite: migrated once for as long as no migration changes, then copied.

`var/` keeps the database, also for the tests (`tests/support/migrated.py`). `site_here` and what
has `here` in its name run the site in the measuring process, as smoke forms do.
"""

import atexit
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

from bench.site import build_environment, run_manage
from tests.support import migrated

MEMORY_FOLDER = "/dev/shm"
_home: Path | None = None
_initial_database: Path | None = None


def write_empty_database(file: Path) -> None:
    """Write an empty database with all tables to `file`."""
    if _initial_database:
        shutil.copyfile(_initial_database, file)
        return
    kept = migrated.kept()
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=kept.parent) as home:
                new = Path(home, "new.sqlite3")
                run_manage(build_environment(Path(home), f"sqlite:///{new}"), "migrate", "-v0")
                new.replace(kept)
    shutil.copyfile(kept, file)


def prepare_site(env: dict[str, str]) -> None:
    """Make the tables and collect the static files of the site that `env` describes."""
    if env["DATABASE_URL"].startswith("sqlite:///"):
        write_empty_database(Path(env["DATABASE_URL"].removeprefix("sqlite:///")))
    else:
        run_manage(env, "migrate", "-v0")
    run_manage(env, "collectstatic", "--noinput", "-v0")


def set_up_site_here(*, in_memory: bool = False) -> Path:
    """Set Django up in this process, on an empty database; return the site's home.

    The home is deleted when the process ends; in_memory: it waits for no disk. A second call only
    empties the database: what a process remembers of the first one stays.
    """
    global _home
    if _home is None:
        is_there = in_memory and os.access(MEMORY_FOLDER, os.W_OK)
        _home = Path(tempfile.mkdtemp(prefix="bench-", dir=MEMORY_FOLDER if is_there else None))
        atexit.register(shutil.rmtree, _home, ignore_errors=True)
        os.environ |= build_environment(_home, f"sqlite:///{_home}/bench.sqlite3")
        os.environ["BENCH_STATIC"] = "plain"
        (_home / "static").mkdir()
        reset_database(_home)
        import dynabench.wsgi  # noqa: F401 - as web processes do
    else:
        from django.db import connections

        connections.close_all()
        reset_database(_home)
    return _home


def begin_with_official_tasks() -> None:
    """Install the official tasks here; later sites of this process and its copies have them."""
    global _initial_database
    from django.db import connections

    from tasks.services import install_official_tasks

    assert _home
    install_official_tasks()
    connections.close_all()  # all is in the file
    _initial_database = Path(shutil.copy(_home / "bench.sqlite3", _home / "begins-with.sqlite3"))


def reset_database(home: Path) -> None:
    """Put an empty database where the site in `home` has its own."""
    for suffix in ("", "-wal", "-shm"):
        Path(home, f"bench.sqlite3{suffix}").unlink(missing_ok=True)
    write_empty_database(home / "bench.sqlite3")


def build_tiny_model_here() -> Path:
    """Return the folder of a small sentiment model with random weights; after `site_here`."""
    from tests.support.serving_models import tiny_model

    assert _home
    folder = _home / "tiny-model"
    if not folder.exists():
        labels = ("positive", "negative", "neutral")
        tiny_model(folder, "sequence-classification", labels=labels)
    return folder


def run_python_here(code: str, *arguments: str) -> str:
    """Return what the code prints, run in this process."""
    before, sys.argv = sys.argv, ["-c", *arguments]
    try:
        with redirect_stdout(StringIO()) as said:
            exec(code, {"__name__": "here"})
    finally:
        sys.argv = before
    return said.getvalue()


@contextmanager
def serve_web_here() -> Iterator[tuple[int, int]]:
    """Serve the site of this process by threads; yield its port and this process's id."""
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    class Quiet(WSGIRequestHandler):
        def log_message(self, *told: object) -> None:
            """Say nothing."""

    server = ThreadedWSGIServer(("127.0.0.1", 0), Quiet)
    server.set_app(get_wsgi_application())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, os.getpid()
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def run_manage_here(url: str, *arguments: str) -> Iterator[int]:
    """Run a command of the site that goes on, in a copy of this process; begin before any thread.

    The block begins once `url` answers; yields the process's id.
    """
    from django.core.management import call_command
    from django.db import connections

    connections.close_all()
    child = os.fork()
    if not child:
        try:
            os.setsid()
            call_command(*arguments)
        finally:
            os._exit(1)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(url, timeout=5)
                break
            except OSError:
                time.sleep(0.1)
        yield child
    finally:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
