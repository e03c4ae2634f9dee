"""Write the whole site to a new folder, or to a bucket."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from core.env import env_secret
from core.jobs.services import noted
from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.services import make_backup
from dynabench.operations.backups.stores import (
    build_dated_place,
    remove_killed_backups,
    remove_older_backups,
)


class Command(BaseCommand):
    """`manage.py backup`."""

    help = (
        "Write database, stored files and models to WHERE, a new folder or s3://BUCKET/FOLDER, "
        "while people go on. BACKUP_PASSPHRASE seals it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("where")
        parser.add_argument("--keys", action="store_true", help="SECRET_KEY, too.")
        parser.add_argument(
            "--days",
            type=int,
            help="Below WHERE, under this moment's name; those of so many days ago go afterwards.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        passphrase, now, days = env_secret("BACKUP_PASSPHRASE"), timezone.now(), options["days"]
        place, removed_names = options["where"], []
        if days is not None:
            if days < 1:
                raise CommandError("--days has to be 1 or more.")
            place = build_dated_place(options["where"], now)
        try:
            with noted("backup"):  # monitors tell when this is long ago
                if days:  # what a killed backup left may fill the disk
                    remove_killed_backups(options["where"])
                manifest = make_backup(place, passphrase=passphrase, with_keys=options["keys"])
                if days:  # only after the new one is whole
                    removed_names = remove_older_backups(options["where"], now - timedelta(days))
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{len(manifest.files)} files, {manifest.size} bytes: {place}")
        if removed_names:
            self.stdout.write(f"Removed: {', '.join(removed_names)}")
        if manifest.missing:
            raise CommandError(
                f"The backup is whole, but {len(manifest.missing)} files that rows name are missing"
                f": {', '.join(manifest.missing[:10])}. See manage.py doctor --media."
            )
