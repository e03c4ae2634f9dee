"""`dynabench worker`: evaluates your own models on this machine, under leases from the site."""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dynabench.client.client import DynabenchClient
from dynabench.client.commands.shared import (
    USAGE,
    CommandError,
    add_command,
    open_client,
    print_note,
)
from dynabench.client.commands.test import find_server_modules
from dynabench.client.errors import DynabenchError, NotFound, Refused

RENEWAL_SECONDS = 20.0
"""The seconds between two renewals of a lease, which lasts two minutes."""
POLL_SECONDS = 15.0
"""The seconds until the site is asked again whether a run is waiting."""


def add_commands(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "worker", run_worker, "evaluate your models of a task on this machine"
    )
    parser.add_argument("task", help="the task's code; its owners must allow you")
    parser.add_argument("--url", dest="server", metavar="URL", help="same as --server")
    parser.add_argument("--model", help="evaluate only the model with this ID")
    parser.add_argument("--set", help="evaluate only this evaluation set")
    parser.add_argument(
        "--key-file", type=Path, help="file with the API token; default: DYNABENCH_API_KEY"
    )
    parser.add_argument(
        "--runner", choices=("docker", "process"), help="default: docker if it is running"
    )
    parser.add_argument("--once", action="store_true", help="stop when no evaluation is waiting")


def run_worker(args: argparse.Namespace) -> int:
    """Lease runs one after another and evaluate each; with --once, stop when none is waiting."""
    if not (find_server_modules() / "evaluation/isolation/inference/leased.py").is_file():
        raise CommandError("This client was built without the server's sandbox.", USAGE)
    key = None
    if args.key_file:
        key = args.key_file.read_text().strip()
    client = open_client(args, key)
    while True:
        lease = client.take_lease(args.task, args.model, args.set)
        if lease is not None:
            _evaluate(client, lease, args.runner)
        elif args.once:
            return 0
        else:
            time.sleep(POLL_SECONDS)


def _evaluate(client: DynabenchClient, lease: Any, runner: str | None) -> None:
    """Evaluate a leased run and send the answers; print a note if the lease is lost.

    1. Download the model and the inputs.
    2. Run the model in the sandbox (`_run_model`).
    3. Send its answers, if any, and how it ended.
    """
    token = str(lease["token"])
    print_note(f"Run {lease['run']}: {lease['examples']} examples of {lease['evaluation_set']}.")
    with TemporaryDirectory(prefix="dynabench-worker-") as name:
        folder = Path(name)
        try:
            with _renew_lease_regularly(client, token):
                client.fetch_lease(token, folder)
            report = _run_model(client, lease, folder, runner)
            ending = report["ending"]
            # A model that failed has no answers: only how it ended is sent.
            answers = folder / "answers.jsonl" if ending["outcome"] == "ok" else None
            with _renew_lease_regularly(client, token):
                client.end_lease(token, answers, report["runner"], ending)
        except (NotFound, Refused) as error:
            print_note(f"This evaluation was taken away: {error}")
            return
    print_note(f"Ended: {ending['outcome']}. {ending['sentence']}".rstrip())


@contextmanager
def _renew_lease_regularly(client: DynabenchClient, token: str) -> Iterator[None]:
    """Renew the lease during the block, in which large files are downloaded or uploaded."""
    end_event = threading.Event()

    def renew_regularly() -> None:
        while not end_event.wait(RENEWAL_SECONDS):
            # Where the lease is lost, the server refuses the files themselves.
            with suppress(DynabenchError):
                client.keep_lease(token)

    threading.Thread(target=renew_regularly, daemon=True).start()
    try:
        yield
    finally:
        end_event.set()


def _run_model(client: DynabenchClient, lease: Any, folder: Path, runner: str | None) -> Any:
    """Run the model in a separate process, renewing the lease, and return the report."""
    config = folder / "task.yaml"
    config.write_text(lease["config_text"], encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "evaluation.isolation.inference.leased",
        str(folder),
        f"--config={config}",
        f"--key=own-{lease['token']!s}",
        f"--digest={lease['digest']}",
        f"--memory-gib={lease['memory_gib']}",
        f"--cpus={lease['cpus']}",
        f"--seconds={lease['seconds']}",
        f"--adapter={lease['adapter'] or 'jsonl'}",
    ]
    if lease["kind"] == "image":
        command.append("--image")
    if runner:
        command.append(f"--runner={runner}")
    with _start_process(command) as process:
        while True:
            try:
                output, _ = process.communicate(timeout=RENEWAL_SECONDS)
            except subprocess.TimeoutExpired:
                # Raises where the lease is lost, which ends the process, too.
                client.keep_lease(lease["token"])
                continue
            try:
                return json.loads(output)
            except ValueError:
                sentence = f"The sandbox could not be started (exit code {process.returncode})."
                ending = {"outcome": "infrastructure", "sentence": sentence, "usage": {}}
                return {"runner": "none", "ending": ending}


@contextmanager
def _start_process(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """Yield a process that runs the server's sandbox. It ends with the block."""
    root = find_server_modules()
    environment = dict(os.environ)
    # A model that leaves its sandbox must find no key.
    environment.pop("DYNABENCH_API_KEY", None)
    environment["PYTHONPATH"] = str(root)
    with subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            # The sandbox's own process ends its container when it is told to stop.
            process.terminate()
