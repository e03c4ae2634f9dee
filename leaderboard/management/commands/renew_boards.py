"""Bring the leaderboards up to date; run it each minute."""

from typing import Any

from django.core.management.base import BaseCommand

from leaderboard.jobs import renew_boards


class Command(BaseCommand):
    help = "Resample the evaluations that ended, freeze exchange rates, keep daily snapshots."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{renew_boards()} evaluations resampled.")
