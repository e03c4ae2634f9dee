"""Delete the simulated task, with its people, rows and files."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.errors import Refused
from dynabench.operations.demo.forget import count_real_people, delete_demo_task


class Command(BaseCommand):
    help = "Delete the task of manage.py demo, including work by real people."

    def handle(self, *args: Any, **options: Any) -> None:
        if people := count_real_people():
            self.stderr.write(f"This also deletes the work of {people} real people.")
        try:
            example_count = delete_demo_task()
        except Refused as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"Demo deleted: {example_count} examples.")
