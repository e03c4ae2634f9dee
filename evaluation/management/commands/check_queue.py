"""Report whether jobs are stuck, for a monitor or a container's health check."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evaluation.isolation.queue.leases import find_stuck_jobs


class Command(BaseCommand):
    help = "Exit with 1 if a job is waiting and no worker takes it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--minutes", type=int, default=5, help="longest time that a job may wait"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # Empty while workers take waiting jobs.
        messages = find_stuck_jobs(timedelta(minutes=options["minutes"]))
        if messages:
            messages.append("See the log of qcluster, if it runs.")
            raise CommandError("\n".join(messages))
        self.stdout.write("No job is stuck.")
