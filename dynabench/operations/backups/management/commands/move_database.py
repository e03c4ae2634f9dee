"""Copy a site's rows from SQLite to PostgreSQL."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.moving import move_rows


class Command(BaseCommand):
    """`manage.py move_database`."""

    help = (
        "Copy all rows from a SQLite file to the empty PostgreSQL database in "
        "DATABASE_URL, and compare every table. Stop the site first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        home = settings.HOME / "db.sqlite3"
        parser.add_argument("file", type=Path, nargs="?", default=home, help=f"Default: {home}.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            move_rows(options["file"], self.stdout.write)
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            "Moved. The old file is unchanged. Keep it until you know that the site works."
        )
