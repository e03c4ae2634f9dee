"""Run the periodic jobs once, for cron: where no qcluster runs, or as a second safeguard."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.jobs.periodic import run_due_jobs


class Command(BaseCommand):
    help = "Run the site's minutely and daily jobs that are due."

    def handle(self, *args: Any, **options: Any) -> None:
        if failed := run_due_jobs():
            raise CommandError(f"These jobs failed (see the log): {', '.join(failed)}.")
