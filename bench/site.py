"""A site of its own for a measurement: home, throw-away database, web processes, their CPU.

`python -m bench.site` measures how many people it carries: `bench/crowd.py`.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.verdict_page import ROOT, run_process

TICKS = os.sysconf("SC_CLK_TCK")


def find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def open_database(kind: str, home: Path) -> Iterator[str]:
    """The address of an empty database: `sqlite`, `postgres` (a server that ends with the block) or
    an address that is used as it is."""
    if kind == "sqlite":
        yield f"sqlite:///{home}/bench.sqlite3"
    elif kind == "postgres":
        with _run_postgres() as url:
            yield url
    else:
        yield kind


@contextmanager
def _run_postgres() -> Iterator[str]:
    """A server as Debian's package sets it up, on a free port and with connections for all."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    programs = found[-1].parent if found else Path(shutil.which("initdb") or "").parent
    run_as = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    folder, port = Path(tempfile.mkdtemp()), find_free_port()
    if run_as:
        shutil.chown(folder, "postgres")

    def run(*command: str) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "cwd": folder, "check": True}
        subprocess.run([*run_as, *command], **quiet)  # type: ignore[call-overload]

    control = [str(programs / "pg_ctl"), "-D", str(folder / "data"), "-w"]
    how = ("-U", "bench", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
    run(str(programs / "initdb"), "-D", str(folder / "data"), *how)
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1"
    try:
        run(*control, "-l", str(folder / "log"), "-o", options, "start")
        yield f"postgres://bench@127.0.0.1:{port}/postgres"
    finally:
        run(*control, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def build_environment(home: Path, url: str) -> dict[str, str]:
    """What a process of the measured site needs to know."""
    return {
        **os.environ,
        "DYNABENCH_HOME": str(home),
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "bench.site_settings",
        "LOG_LEVEL": "ERROR",
        "PYTHONPATH": str(ROOT),
        "DEBUG": "0",
    }


def build_command(*arguments: str) -> list[str]:
    """A command of the site that goes on."""
    return [sys.executable, "manage.py", *arguments]


def run_manage(env: dict[str, str], *arguments: str) -> None:
    subprocess.run(build_command(*arguments), cwd=ROOT, env=env, check=True)


def run_python(env: dict[str, str], code: str, *arguments: str) -> str:
    """What the code prints, run with Django set up."""
    command = [sys.executable, "-c", "import django; django.setup()\n" + code, *arguments]
    run = {"cwd": ROOT, "env": env, "check": True, "stdout": subprocess.PIPE, "text": True}
    return str(subprocess.run(command, **run).stdout)  # type: ignore[call-overload]


@contextmanager
def serve_web(env: dict[str, str], processes: int) -> Iterator[tuple[int, int]]:
    """The site as quickstart runs it: its port and the id of its main process."""
    port = find_free_port()
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "dynabench.wsgi",
        "--bind",
        f"127.0.0.1:{port}",
    ]
    env = {**env, "WEB_CONCURRENCY": str(processes)}
    with run_process(command, env, f"http://127.0.0.1:{port}/healthz/") as server:
        yield port, server.pid


def read_cpu_seconds(pid: int) -> float:
    """CPU time of a process and of all that it started, whether they still run or not."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / TICKS  # user, system, and the same of children that ended
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(read_cpu_seconds(int(child)) for child in children)


if __name__ == "__main__":
    from bench.crowd import main

    main()
