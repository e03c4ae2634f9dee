"""Tell whether jobs are stuck, for a monitor or a container's health check."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evaluation.isolation.queue.leases import find_stuck_jobs


class Command(BaseCommand):
    help = "End with 1 when a job waits and no worker takes it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--minutes", type=int, default=5, help="how long is too long")

    def handle(self, *args: Any, **options: Any) -> None:
        # Empty as long as workers take what waits.
        messages = find_stuck_jobs(timedelta(minutes=options["minutes"]))
        if messages:
            messages.append("See the log of qcluster, if it runs.")
            raise CommandError("\n".join(messages))
        self.stdout.write("No job is stuck.")
