"""Do all work of the sweep that is due, as qcluster does every half minute."""

from typing import Any

from django.core.management.base import BaseCommand

from evaluation.jobs import sweep_all


class Command(BaseCommand):
    help = "Put jobs whose worker died back into the queue, and ring for those that wait."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{sweep_all()} messages sent.")
