"""Fill the task "Demo" with a simulated community."""

import json
import signal
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from dynabench.demo.loop import run_demo
from dynabench.lib.refusals import as_command_error


class Command(BaseCommand):
    help = "Simulate people who write, judge, release and train for three rounds; some minutes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--seed", type=int, default=0, help="random seed")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # its model server ends with it
        with as_command_error():
            found = run_demo(options["seed"], self.stderr.write)
        if options["json"]:
            self.stdout.write(json.dumps(found))
            return
        for one in found["rounds"]:
            vmer = "unknown" if one["vmer"] is None else f"{one['vmer']:.0%}"
            self.stdout.write(
                f"round {one['round']}: {one['collected']} examples, {one['fooled']} fooled the "
                f"model, {one['verified_fooled']} verified, vMER {vmer}"
            )
        self.stdout.write(f"{found['models']} models on the board; {found['seconds']:.0f} seconds")
