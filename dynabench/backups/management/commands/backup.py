"""Write the whole site to a new folder, or to a bucket."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dynabench.backups.errors import BackupError
from dynabench.backups.services import make_backup
from dynabench.env import env_secret
from dynabench.upkeep.services import noted


class Command(BaseCommand):
    """`manage.py backup`."""

    help = (
        "Write database, stored files and models to WHERE, a new folder or s3://BUCKET/FOLDER, "
        "while people go on. BACKUP_PASSPHRASE seals it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("where")
        parser.add_argument("--keys", action="store_true", help="SECRET_KEY, too.")

    def handle(self, *args: Any, **options: Any) -> None:
        passphrase = env_secret("BACKUP_PASSPHRASE")
        try:
            with noted("backup"):
                made = make_backup(
                    options["where"], passphrase=passphrase, with_keys=options["keys"]
                )
        except (BackupError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{len(made.files)} files, {made.size} bytes: {options['where']}")
        if made.missing:
            raise CommandError(
                f"The backup is whole, but {len(made.missing)} files that rows name are missing: "
                f"{', '.join(made.missing[:10])}. See manage.py doctor --media."
            )
