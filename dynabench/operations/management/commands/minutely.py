"""The periodic work once, for cron: where no qcluster runs, or as a second guard."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.jobs.periodic import do_what_is_due


class Command(BaseCommand):
    help = "Do what the site does each minute and each day, unless it was done within that time."

    def handle(self, *args: Any, **options: Any) -> None:
        if failed := do_what_is_due():
            raise CommandError(f"Failed, as the log says: {', '.join(failed)}.")
