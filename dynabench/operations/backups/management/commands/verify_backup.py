"""Read a backup completely, to find damaged files."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.env import read_env_secret
from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.making import Backup


class Command(BaseCommand):
    """`manage.py verify_backup`."""

    help = "Compare every file of a backup with its digest. Exits with 1 if a file is damaged."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("where")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            backup = Backup(options["where"], passphrase=read_env_secret("BACKUP_PASSPHRASE"))
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        damages = list(backup.iterate_damages())
        for damage in damages:
            self.stderr.write(damage)
        if damages:
            raise CommandError(f"{len(damages)} of {len(backup.manifest.files)} files are damaged.")
        manifest = backup.manifest
        files = f"{len(manifest.files)} files, {manifest.size} bytes"
        self.stdout.write(f"Complete: {manifest.site}, {manifest.made_at}, {files}.")
