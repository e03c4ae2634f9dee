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
        "Copy all rows of a SQLite file into the empty PostgreSQL that DATABASE_URL names, and "
        "compare counts and digests of every table. Stop the site before."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        home = settings.HOME / "db.sqlite3"
        parser.add_argument("file", type=Path, nargs="?", default=home, help=f"Default: {home}.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            move_rows(options["file"], self.stdout.write)
        except BackupError as error:
            raise CommandError(str(error)) from error
        self.stdout.write("Moved. The old file is as it was; keep it until the site runs well.")
