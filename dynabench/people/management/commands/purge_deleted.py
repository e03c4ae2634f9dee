"""Erase the texts of people who have left. Run it once a day."""

from typing import Any

from django.core.management.base import BaseCommand

from dynabench.people.deletion.services import purge_deleted


class Command(BaseCommand):
    """The command `manage.py purge_deleted`, which finishes interrupted account deletions."""

    help = "Delete the texts of people whose account was deleted. Run once a day."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{purge_deleted()} examples emptied.")
