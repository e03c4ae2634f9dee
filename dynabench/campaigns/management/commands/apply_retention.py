"""Delete data whose retention period is over."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from core.jobs.periodic import tidy_daily
from dynabench.campaigns.retention_services import (
    apply_retention,
    select_expired_ids,
    select_expired_pauses,
)


class Command(BaseCommand):
    help = (
        "Delete data whose retention period is over. docs/privacy.md and docs/operators.md list it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the command's options."""
        parser.add_argument("--dry-run", action="store_true", help="show what would be deleted")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what has passed its retention period, and delete it."""
        self.stdout.write(f"panel ids: {select_expired_ids().count()}")
        self.stdout.write(f"pauses with their appeals: {select_expired_pauses().count()}")
        if not options["dry_run"]:
            self.stdout.write(f"{apply_retention()} rows emptied or deleted.")
            self.stdout.write(f"{tidy_daily()} rows of what the daily sweep deletes.")
