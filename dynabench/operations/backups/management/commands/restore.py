"""Restore a backup into this empty site."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.env import read_env_secret
from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.making import Backup
from dynabench.operations.backups.rehearsing import rehearse_restore
from dynabench.operations.backups.restoring import restore


class Command(BaseCommand):
    """`manage.py restore`."""

    help = (
        "Restore a backup into an empty site of the same version, and repeat all erasures "
        "since then."
    )
    requires_system_checks = []  # one of them fails while a restoration is not finished

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("where")
        parser.add_argument(
            "--without-log",
            action="store_true",
            help=(
                "Restore without an erasure log. Data that people deleted since the backup "
                "comes back."
            ),
        )

        parser.add_argument(
            "--rehearse",
            action="store_true",
            help=(
                "Test the restore next to this site, then remove the result. The site keeps "
                "running."
            ),
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["rehearse"]:
                self._rehearse(options["where"], without_log=options["without_log"])
                return
            backup = Backup(options["where"], passphrase=read_env_secret("BACKUP_PASSPHRASE"))
            lines = restore(backup, without_log=options["without_log"])
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        for line in lines:
            self.stdout.write(f"{line}.")
        self.stdout.write(
            "Restored. Run manage.py doctor --quick --media before you open the site."
        )

    def _rehearse(self, folder_address: str, *, without_log: bool) -> None:
        for line in rehearse_restore(folder_address, without_log=without_log):
            self.stdout.write(line)
        self.stdout.write("This backup can be restored.")
