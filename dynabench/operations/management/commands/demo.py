"""Fill the task "Demo" by simulating a community."""

import json
import signal
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from core.errors import Refused
from core.web.refusals import raise_as_command_error
from dynabench.operations.demo.community import make_task
from dynabench.operations.demo.loop import run_demo
from dynabench.operations.demo.models import DemoRun
from dynabench.operations.demo.server import open_site_or_substitute
from evaluation.isolation.queue.subprocess_job import report_work


class Command(BaseCommand):
    help = "Simulate three rounds of writing, judging, releasing and training. Takes a few minutes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--seed", type=int, default=0, help="random seed")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
        parser.add_argument("--run", type=int, help="for queue workers: run a claimed job")

    def handle(self, *args: Any, **options: Any) -> None:
        # Called by a worker, which watches the process and holds the lease.
        if options["run"]:
            self._run_claimed_job(options["run"], options["seed"])
            return
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # its model server ends with it
        with raise_as_command_error(), open_site_or_substitute():
            report = run_demo(make_task(), options["seed"], self._show_progress)
        if options["json"]:
            self.stdout.write(json.dumps(report))
            return
        for row in report["rounds"]:
            vmer = "unknown"
            if row["vmer"] is not None:
                vmer = f"{row['vmer']:.0%}"
            self.stdout.write(
                f"round {row['round']}: {row['collected']} examples, {row['fooled']} "
                f"fooled the model, {row['verified_fooled']} confirmed, catch rate {vmer}"
            )
        self.stdout.write(
            f"{report['models']} models on the board; {report['seconds']:.0f} seconds"
        )

    def _show_progress(self, share: float, words: str) -> None:
        self.stderr.write(f"{share:4.0%} {words}")

    def _run_claimed_job(self, pk: int, seed: int) -> None:
        """Fill the task in this process, which a worker supervises."""
        task = DemoRun.objects.select_related("task").get(pk=pk).task
        report_work(self.stdout, lambda show: run_demo(task, seed, show), Refused)
