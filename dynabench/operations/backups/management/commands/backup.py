"""Write a backup of the whole site to a new folder or a bucket."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from core.env import read_env_secret
from core.jobs.services import record_job_success
from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.making import make_backup
from dynabench.operations.backups.stores import (
    build_dated_address,
    remove_killed_backups,
    remove_older_backups,
)


class Command(BaseCommand):
    """`manage.py backup`."""

    help = (
        "Back up the database, stored files and models to WHERE, a new folder or "
        "s3://BUCKET/FOLDER. The site keeps running. Set BACKUP_PASSPHRASE to encrypt the "
        "backup."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("where")
        parser.add_argument("--keys", action="store_true", help="Include SECRET_KEY.")
        parser.add_argument(
            "--days",
            type=int,
            help=(
                "Write to a dated folder below WHERE, and delete backups older than this many days."
            ),
        )

    def handle(self, *args: Any, **options: Any) -> None:
        passphrase, now, days = (
            read_env_secret("BACKUP_PASSPHRASE"),
            timezone.now(),
            options["days"],
        )
        folder_address, removed_names = options["where"], []
        if days is not None:
            if days < 1:
                raise CommandError("--days must be 1 or more.")
            folder_address = build_dated_address(options["where"], now)
        try:
            with record_job_success("backup"):  # monitors tell when this is long ago
                if days:  # what a killed backup left may fill the disk
                    remove_killed_backups(options["where"])
                manifest = make_backup(
                    folder_address, passphrase=passphrase, with_keys=options["keys"]
                )
                if days:  # only after the new one is whole
                    removed_names = remove_older_backups(options["where"], now - timedelta(days))
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{len(manifest.files)} files, {manifest.size} bytes: {folder_address}")
        if removed_names:
            self.stdout.write(f"Removed: {', '.join(removed_names)}")
        if manifest.missing:
            raise CommandError(
                f"The backup is complete, but {len(manifest.missing)} files that the "
                f"database refers to are missing: {', '.join(manifest.missing[:10])}. Run "
                "manage.py doctor --media."
            )
