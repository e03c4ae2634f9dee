"""Set up what is missing and run the whole site on one machine, with one command."""

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
from core.web.outages import FULL_PATTERN, find_outage
from dynabench.operations.demo.server import is_port_taken
from dynabench.operations.demo.services import request_demo
from dynabench.operations.management.installing import (
    LANGUAGE_MODEL,
    find_first_rounds,
    install,
    open_round,
)
from evaluation.training.starters import STARTER_CODES
from tasks.models import SIMULATED_TASK_CODE, Round, Task, TaskMember
from tasks.rounds.loop import list_targets_in_loop

ROLES = ("admin", "owner", "annotator", "validator")
MANAGE_COMMAND = [sys.executable, str(settings.BASE_DIR / "manage.py")]
FIRST_STEP = "Start here: sign in as annotator@example.com, choose a task and fool its model.\n"
READY_SECONDS = 120
STOP_SECONDS = 15
LOG_BYTES = 20_000_000
MAX_PORTS = 100
"""The number of ports to try for the model server."""
LOADING_STATUSES = (0, HTTPStatus.SERVICE_UNAVAILABLE)
"""The statuses of a model that is being loaded. 0 means that the server is too busy to respond."""

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Set up the site and run its web server, queue worker and model server until Ctrl-C."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--setup-only", action="store_true", help="set up the site without running it"
        )
        parser.add_argument(
            "--demo", action="store_true", help="fill a task with the work of simulated people"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(
                signal_number, stop_by_signal
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
            message = f"The disk of {settings.HOME} is full. Free some space, then start again."
            raise CommandError(message) from None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting_rounds: dict[Round, list[str]] = {}

    def _run(self, *, setup_only: bool, demo: bool) -> None:
        port = settings.PORT
        if not setup_only:
            # Before anything is set up, which takes a minute.
            check_port_is_free("PORT", "127.0.0.1", port)
        self._choose_model_port(is_setup=setup_only)
        install(self.stdout.write)
        self._make_accounts()
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
            if demo and not Task.objects.filter(code=SIMULATED_TASK_CODE).exists():
                request_demo(None)
                self.stdout.write(
                    f"Watch the demo fill up: http://localhost:{port}/t/{SIMULATED_TASK_CODE}/"
                )
            processes.watch(self._open_loaded_rounds)
        finally:
            processes.stop()
            # A site that runs keeps its containers while another command sets it up.
            if not setup_only:
                # Imported here, because it needs Docker's library, which only workers have.
                from evaluation.isolation.queue.cleanup import remove_all_containers

                # A killed worker leaves the model that it evaluates, which would compute on.
                remove_all_containers()

    def _choose_model_port(self, *, is_setup: bool) -> None:
        """Move the model server to a free port if the default port is taken and none is configured.

        This allows a second site to start on the same machine. is_setup: whether the command only
        sets up the site; then the configured address may be in use. Raises CommandError.
        """
        model_url = urlsplit(settings.MODEL_SERVER_URL)
        host, port = model_url.hostname or "127.0.0.1", model_url.port or 80
        if os.environ.get("MODEL_SERVER_URL"):
            if not is_setup:
                check_port_is_free("MODEL_SERVER_URL", host, port)
        elif is_port_taken(host, port):
            url = f"http://{host}:{find_free_port(host, port)}"
            # The programs that are started here read it from their environment.
            settings.MODEL_SERVER_URL = os.environ["MODEL_SERVER_URL"] = url
            self.stdout.write(
                f"Port {port} is in use, so the model server runs at {url}. For other "
                f"commands of this site, run: export MODEL_SERVER_URL={url}"
            )

    def _open_rounds(self) -> None:
        """Open the first rounds that were never opened, or note those to open later.

        A round waits until its language model is loaded. If its target does not answer, it stays
        ready.
        """
        for round in find_first_rounds():
            targets = [
                target.name
                for target in list_targets_in_loop(round)
                if target.source == LANGUAGE_MODEL
            ]
            self._waiting_rounds[round] = [build_health_url(name) for name in targets]
        self._open_loaded_rounds()
        for round in self._waiting_rounds:
            self.stdout.write(f"{round} opens as soon as its language model is ready.")

    def _open_loaded_rounds(self) -> None:
        """Open the rounds whose models have finished loading."""
        for round, urls in list(self._waiting_rounds.items()):  # a copy, as entries go
            if any(fetch_status(url) in LOADING_STATUSES for url in urls):
                continue
            del self._waiting_rounds[round]
            open_round(round, self.stdout.write)

    def _make_accounts(self) -> None:
        """Create one account per role, if there are no accounts.

        The passwords are printed once and stored in a file that only this user can read.
        """
        if User.objects.exists():
            return
        accounts_path = settings.HOME / "demo-accounts.txt"
        lines = []
        for role in ROLES:
            password = secrets.token_urlsafe(9)
            create_user = User.objects.create_user
            if role == "admin":
                create_user = User.objects.create_superuser
            user = create_user(f"{role}@example.com", password)
            confirm_address(user)
            lines.append(f"{user.email:24} {password}")
            if role == "owner":
                for task in Task.objects.all():
                    TaskMember.objects.create(task=task, user=user, role=TaskMember.Role.OWNER)
        accounts_path.touch(mode=0o600)  # before it has any content
        accounts_path.write_text("\n".join(lines) + "\n")
        self.stdout.write("\nAccounts (also in " + str(accounts_path) + "):")
        self.stdout.write("\n".join(f"  {line}" for line in lines))


class Processes:
    """The web server, queue worker and model server, each in a process group of its own.

    Creating an instance starts them. Ctrl-C reaches only this command, which then asks each main
    process to stop.
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
        """Wait until the web and model servers respond. Raises CommandError that names the log."""
        deadline = time.monotonic() + READY_SECONDS
        for name, url in self.urls.items():
            # While it waits it looks whether the process still lives.
            if not self._wait_for_status(url, lambda status: status == HTTPStatus.OK, deadline):
                raise CommandError(f"{name} did not start; see {self.logs}/{name}.log.")

    def wait_until_loaded(self) -> None:
        """Wait until all starters are loaded, or until that takes too long."""
        deadline = time.monotonic() + READY_SECONDS
        for code in STARTER_CODES:
            url = build_health_url(f"starter-{code}")
            self._wait_for_status(url, lambda status: status not in LOADING_STATUSES, deadline)

    def _wait_for_status(self, url: str, is_wanted: Callable[[int], bool], deadline: float) -> bool:
        """Wait until the URL responds with a wanted status; return False if the deadline passes.

        Raises CommandError if the web or model server ends.
        """
        while not is_wanted(fetch_status(url)):
            self._check_alive()
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def watch(self, do_meanwhile: Callable[[], None]) -> None:
        """Watch the processes until the web or model server ends; never returns.

        Restarts the queue worker if it ends, and rotates the logs. do_meanwhile: a function that is
        called about every second. Raises CommandError if the web or model server ends.
        """
        while True:
            do_meanwhile()
            for name in self.running:
                rotate_log(self.logs / f"{name}.log")
            self._restart_dead_queue()
            self._check_alive()
            time.sleep(1)

    def _restart_dead_queue(self) -> None:
        """Restart the queue worker if it was killed. It recovers from other failures by itself."""
        # Web and models are watched by `_check_alive`, and end the command.
        code = self.running["queue"].poll()
        if code is not None:
            logger.warning("The queue ended with %s and is being restarted", code)
            self._start("queue")

    def _check_alive(self) -> None:
        for name in self.urls:
            process = self.running[name]
            if process.poll() is not None:
                log = f"{self.logs}/{name}.log"
                raise CommandError(f"{name} ended with {process.returncode}; see {log}.")

    def stop(self) -> None:
        """Ask every main process to stop, and kill the ones that do not stop."""
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
    """Hold the home folder's lock during the block. Raises CommandError if it is taken.

    Only one `./run` may use a home folder. The operating system releases the lock even if the
    command is killed.
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

    Libraries written in Rust only say so in the message.
    """
    outage = find_outage(error)
    is_ours = outage is not None and outage.status == HTTPStatus.INSUFFICIENT_STORAGE
    return is_ours or FULL_PATTERN.search(str(error)) is not None


def check_port_is_free(variable: str, host: str, port: int) -> None:
    """Raise CommandError if the address is in use, or only root may listen there."""
    if is_port_taken(host, port):
        raise CommandError(
            f"{host}:{port} is already in use. Stop the program there, or set {variable} "
            "to another one."
        )
    try:
        with socket.socket() as probe:
            # As servers do, so that a port whose last connection just ended counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except PermissionError:
        raise CommandError(
            f"Only root may open port {port}. Set {variable} to another one, such as 8000."
        ) from None
    except OSError:  # an address of another machine, whose server is asked there
        return


def find_free_port(host: str, port: int) -> int:
    """Return the first free port after `port`. Raises CommandError."""
    for candidate in range(port + 1, port + MAX_PORTS):
        if not is_port_taken(host, candidate):
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
    """Raise KeyboardInterrupt, so that SIGINT or SIGTERM stops everything."""
    raise KeyboardInterrupt
