"""Freeze the exchange rates of a task's leaderboard again."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from core.web.refusals import raise_as_command_error
from leaderboard.snapshots.services import refreeze_rates
from tasks.management.lookups import get_task


class Command(BaseCommand):
    help = (
        "Recalculate the exchange rates from the models published today. This changes all "
        "Dynascores."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")

    def handle(self, *args: Any, **options: Any) -> None:
        with raise_as_command_error():
            snapshot = refreeze_rates(task=get_task(options["code"]), actor=None)
        table = snapshot.table
        rates = []
        for metric in table["metrics"]:
            rate = table["rates"].get(metric["name"])
            if rate is not None:
                rates.append(f"{metric['name']} {rate:.4g}")
        pool, worth = ", ".join(table["pool"]), ", ".join(rates)
        self.stdout.write(f"Frozen on {pool}: {worth}. Snapshot {snapshot.number} was taken.")
