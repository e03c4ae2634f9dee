"""Delete the simulated task, with its people, rows and files."""

from typing import Any

from django.core.management.base import BaseCommand

from dynabench.operations.demo.forget import count_real_people, delete_demo_task


class Command(BaseCommand):
    help = "Delete what manage.py demo made, and what real people did in its task."

    def handle(self, *args: Any, **options: Any) -> None:
        if people := count_real_people():
            self.stderr.write(f"What {people} real people wrote or judged there goes with it.")
        self.stdout.write(f"The demo is gone: {delete_demo_task()} examples.")
