"""Freeze the exchange rates of a task's leaderboard again."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dynabench.lib.refusals import as_command_error
from leaderboard.snapshots.services import refreeze_rates
from tasks.models import Task


class Command(BaseCommand):
    help = "Read the exchange rates from today's published models; this changes all Dynascores."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")

    def handle(self, *args: Any, **options: Any) -> None:
        task = Task.objects.filter(code=options["code"]).first()
        if task is None:
            raise CommandError(f"There is no task {options['code']!r}.")
        with as_command_error():
            snapshot = refreeze_rates(task=task, actor=None)
        table = snapshot.table
        rates = [(one["name"], table["rates"].get(one["name"])) for one in table["metrics"]]
        worth = ", ".join(f"{name} {rate:.4g}" for name, rate in rates if rate is not None)
        self.stdout.write(
            f"Frozen on {', '.join(table['pool'])}: {worth}. Snapshot {snapshot.number} was taken."
        )
