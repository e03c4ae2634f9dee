"""The whole loop on one machine with one command: set up what is missing, then run everything."""

import fcntl
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from core.accounts.models import User, confirm_address
from core.web.outages import FULL, outage_of
from dynabench.operations.demo.server import is_taken
from dynabench.operations.demo.services import request_demo
from dynabench.operations.management.installing import (
    LANGUAGE_MODEL,
    find_first_rounds,
    install,
    open_round,
)
from evaluation.training.starters import CODES
from tasks.models import SIMULATED, Round, Task, TaskMember
from tasks.rounds.loop import get_loop

ROLES = ("admin", "owner", "annotator", "validator")
MANAGE_COMMAND = [sys.executable, str(settings.BASE_DIR / "manage.py")]
FIRST_STEP = "First: sign in as annotator@example.com, choose a task and fool its model.\n"
READY_SECONDS = 120
STOP_SECONDS = 15
LOG_BYTES = 20_000_000
MAX_PORTS = 100
"""Ports that are tried for a model server."""
LOADING_STATUSES = (0, HTTPStatus.SERVICE_UNAVAILABLE)
"""What is said of a model that is being loaded; 0: too much at work to say so."""

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Set up what is missing and run web, queue worker and model server until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--setup-only", action="store_true", help="set up, do not run")
        parser.add_argument("--demo", action="store_true", help="fill a task with simulated people")

    def handle(self, *args: Any, **options: Any) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(
                number, stop_by_signal
            )  # `finally` below stops the processes, whichever it is
        try:
            with nullcontext() if options["setup_only"] else hold_run_lock():
                self._run(setup_only=options["setup_only"], demo=options["demo"])
        except KeyboardInterrupt:
            self.stdout.write("\nStopped.")
        except CommandError:
            raise
        except Exception as error:
            if not is_disk_full(error):
                raise
            room = f"The disk of {settings.HOME} is full. Free some space and start again."
            raise CommandError(room) from None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unprepared: dict[Round, list[str]] = {}

    def _run(self, *, setup_only: bool, demo: bool) -> None:
        port = settings.PORT
        if not setup_only:
            # Before anything is set up, which takes a minute.
            refuse_taken("PORT", "127.0.0.1", port)
        self._choose_model_port(is_setup=setup_only)
        install(self.stdout.write)
        self._accounts()
        if setup_only and not find_first_rounds():
            return
        processes = Processes(port, only_models=setup_only)
        try:
            processes.wait_until_ready()
            if find_first_rounds():
                # A round opens only once its target answers.
                processes.wait_until_loaded()
                self._open_rounds()
            if setup_only:
                return
            self.stdout.write(f"\nDynabench is at http://localhost:{port}/  (Ctrl-C stops it)")
            self.stdout.write(FIRST_STEP)
            if demo and not Task.objects.filter(code=SIMULATED).exists():
                request_demo(None)
                self.stdout.write(f"It fills as you watch: http://localhost:{port}/t/{SIMULATED}/")
            processes.watch(self._open_prepared)
        finally:
            processes.stop()

    def _choose_model_port(self, *, is_setup: bool) -> None:
        """Move the model server to a free port if the default port is taken and none is configured.

        So a second site can start on the same machine. is_setup: nothing keeps running, so a
        configured address may be taken. Raises CommandError.
        """
        models = urlsplit(settings.MODEL_SERVER_URL)
        host, port = models.hostname or "127.0.0.1", models.port or 80
        if os.environ.get("MODEL_SERVER_URL"):
            if not is_setup:
                refuse_taken("MODEL_SERVER_URL", host, port)
        elif is_taken(host, port):
            url = f"http://{host}:{find_free_port(host, port)}"
            # The programs that are started here read it from their environment.
            settings.MODEL_SERVER_URL = os.environ["MODEL_SERVER_URL"] = url
            self.stdout.write(
                f"Port {port} is taken, so the model server runs at {url}. For other commands of "
                f"this site: export MODEL_SERVER_URL={url}"
            )

    def _open_rounds(self) -> None:
        """Open the first rounds that were never opened.

        A round whose target does not answer stays ready.
        """
        for round in find_first_rounds():
            targets = [target.name for target in get_loop(round) if target.source == LANGUAGE_MODEL]
            self._unprepared[round] = [build_health_url(name) for name in targets]
        self._open_prepared()
        for round in self._unprepared:
            self.stdout.write(f"{round} opens when its language model is prepared.")

    def _open_prepared(self) -> None:
        """Open the rounds whose models have finished loading."""
        for round, urls in list(self._unprepared.items()):  # a copy, as entries go
            if any(fetch_status(url) in LOADING_STATUSES for url in urls):
                continue
            del self._unprepared[round]
            open_round(round, self.stdout.write)

    def _accounts(self) -> None:
        """Create one account per role.

        Prints passwords once and stores them where only we can read.
        """
        if User.objects.exists():
            return
        file = settings.HOME / "demo-accounts.txt"
        lines = []
        for role in ROLES:
            password = secrets.token_urlsafe(9)
            make = User.objects.create_user
            if role == "admin":
                make = User.objects.create_superuser
            user = make(f"{role}@example.com", password)
            confirm_address(user)
            lines.append(f"{user.email:24} {password}")
            if role == "owner":
                for task in Task.objects.all():
                    TaskMember.objects.create(task=task, user=user, role=TaskMember.Role.OWNER)
        file.touch(mode=0o600)  # before it has any content
        file.write_text("\n".join(lines) + "\n")
        self.stdout.write("\nAccounts (also in " + str(file) + "):")
        self.stdout.write("\n".join(f"  {line}" for line in lines))


class Processes:
    """The web server, queue worker and model server, each in a process group of its own.

    Ctrl-C therefore reaches only this command, which asks each main process to stop.
    """

    def __init__(self, port: int, *, only_models: bool = False) -> None:
        model_url = urlsplit(settings.MODEL_SERVER_URL)
        self.urls = {
            "web": f"http://127.0.0.1:{port}/healthz/",
            "models": f"{settings.MODEL_SERVER_URL}/health",
        }
        web = [sys.executable, "-m", "gunicorn", "dynabench.wsgi", "--bind", f"127.0.0.1:{port}"]
        models = ["serve_model", "--registered", "--host", model_url.hostname or "127.0.0.1"]
        models += ["--port", str(model_url.port or 80)]
        commands = {
            "models": MANAGE_COMMAND + models,
            "queue": [*MANAGE_COMMAND, "qcluster"],
            "web": web,
        }
        if only_models:
            commands, self.urls = {"models": commands["models"]}, {"models": self.urls["models"]}
        self.commands = commands
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.logs = settings.HOME / "logs"
        self.logs.mkdir(exist_ok=True)
        for name in commands:
            self._start(name)

    def _start(self, name: str) -> None:
        environment = {**os.environ, "ALLOWED_HOSTS": ",".join(settings.ALLOWED_HOSTS)}
        with (self.logs / f"{name}.log").open("ab") as file:
            # A session of its own, so that Ctrl-C reaches only this command.
            self.running[name] = subprocess.Popen(
                self.commands[name],
                cwd=settings.BASE_DIR,
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        """Wait until the web and model servers answer. Raises CommandError with the log to read."""
        deadline = time.monotonic() + READY_SECONDS
        for name, url in self.urls.items():
            # While it waits it looks whether the process still lives.
            if not self._has_come(url, lambda status: status == HTTPStatus.OK, deadline):
                raise CommandError(f"{name} did not start; see {self.logs}/{name}.log.")

    def wait_until_loaded(self) -> None:
        """Wait until all starters are loaded, or until that takes too long."""
        deadline = time.monotonic() + READY_SECONDS
        for code in CODES:
            url = build_health_url(f"starter-{code}")
            self._has_come(url, lambda status: status not in LOADING_STATUSES, deadline)

    def _has_come(self, url: str, is_wanted: Callable[[int], bool], deadline: float) -> bool:
        """Return whether the URL responds with a wanted status before the deadline."""
        while not is_wanted(fetch_status(url)):
            self._check_alive()
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def watch(self, meanwhile: Callable[[], None]) -> None:
        """Watch the processes forever.

        Raises CommandError if the web or model server ends by itself.
        meanwhile: called every second.
        """
        while True:
            meanwhile()
            for name in self.running:
                rotate_log(self.logs / f"{name}.log")
            self._look_after_queue()
            self._check_alive()
            time.sleep(1)

    def _look_after_queue(self) -> None:
        """Restart the queue worker if it was killed. It recovers from everything else by itself."""
        # Web and models are watched by `_check_alive`, and end the command.
        code = self.running["queue"].poll()
        if code is not None:
            logger.warning("The queue ended with %s and is started again", code)
            self._start("queue")

    def _check_alive(self) -> None:
        for name in self.urls:
            process = self.running[name]
            if process.poll() is not None:
                log = f"{self.logs}/{name}.log"
                raise CommandError(f"{name} ended with {process.returncode}; see {log}.")

    def stop(self) -> None:
        """Ask every main process to end, and kill those that do not."""
        for process in self.running.values():
            process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for process in self.running.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                # The whole group, with workers that a main process has left.
                os.killpg(process.pid, signal.SIGKILL)


def rotate_log(log: Path) -> None:
    """Copy a large log to the same name with `.1`, replacing the former copy, and empty it.

    Processes append to the file, so they continue at its new end.
    """
    if log.exists() and log.stat().st_size > LOG_BYTES:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        os.truncate(log, 0)


@contextmanager
def hold_run_lock() -> Iterator[None]:
    """Hold the lock of the home folder, so that only one `./run` uses it. Raises CommandError.

    The operating system releases the lock even if the command is killed.
    """
    # Opened without emptying it: it may name the process that holds the lock.
    with (settings.HOME / "run.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CommandError(
                f"Another ./run (process {file.read().strip()}) uses {settings.HOME}. "
                "Stop it, or set DYNABENCH_HOME to another folder."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def is_disk_full(error: BaseException) -> bool:
    """Return whether the error was caused by a full disk.

    Rust libraries say so only in the message.
    """
    outage = outage_of(error)
    is_ours = outage is not None and outage.status == HTTPStatus.INSUFFICIENT_STORAGE
    return is_ours or FULL.search(str(error)) is not None


def refuse_taken(variable: str, host: str, port: int) -> None:
    """Raise CommandError if another program listens at the address, or if only root may."""
    if is_taken(host, port):
        raise CommandError(
            f"Something runs at {host}:{port} already. Stop it, or set {variable} to another."
        )
    try:
        with socket.socket() as trial:
            # As servers do, so that a port whose last connection just ended counts as free.
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except PermissionError:
        raise CommandError(
            f"Only root may open port {port}. Set {variable} to another, such as 8000."
        ) from None
    except OSError:  # an address of another machine, whose server is asked there
        return


def find_free_port(host: str, port: int) -> int:
    """Return the first free port after `port`. Raises CommandError."""
    for candidate in range(port + 1, port + MAX_PORTS):
        if not is_taken(host, candidate):
            return candidate
    raise CommandError(f"No port from {port} to {port + MAX_PORTS - 1} is free at {host}.")


def build_health_url(target: str) -> str:
    """Return the URL at which the model server reports whether a target is ready."""
    return f"{settings.MODEL_SERVER_URL}/models/{target}/health"


def fetch_status(url: str) -> int:
    """Return the HTTP status of a GET request to the URL; 0 if there is no response in time."""
    try:
        return httpx.get(url, timeout=2).status_code
    except httpx.TransportError:
        return 0


def stop_by_signal(number: int, frame: FrameType | None) -> None:
    """Stop everything on SIGINT or SIGTERM."""
    raise KeyboardInterrupt
