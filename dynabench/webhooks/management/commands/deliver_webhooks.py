"""Tell webhooks what happened; run it each minute."""

from typing import Any

from django.core.management.base import BaseCommand

from dynabench.webhooks.jobs import deliver_due


class Command(BaseCommand):
    help = "Tell webhooks what happened since, and try again what failed."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{deliver_due()} deliveries tried.")
