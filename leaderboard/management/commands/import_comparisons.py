"""Import a file of comparisons that people made elsewhere."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.web.refusals import raise_as_command_error
from leaderboard.arena.services import import_comparisons

MAX_NAMED_LINES = 50


class Command(BaseCommand):
    help = "Import comparisons of models (CSV) into an arena. Running it again adds only new ones."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="CSV: id, worker, left, right, winner")
        parser.add_argument("--task", metavar="CODE", required=True)
        parser.add_argument(
            "--create", action="store_true", help="create the task if it doesn't exist"
        )
        parser.add_argument(
            "--owner", default="", metavar="EMAIL", help="owner of a new task; default: a superuser"
        )

    @raise_as_command_error()
    def handle(self, *args: Any, **options: Any) -> None:
        self._path, self._named = options["file"], 0
        try:
            with self._path.open("rb") as file:
                summary = import_comparisons(
                    lines=file,
                    code=options["task"],
                    create=options["create"],
                    owner=options["owner"],
                    on_bad_line=self._report_line,
                )
        except OSError as error:
            raise CommandError(f"{self._path}: {error.strerror}.") from None
        self.stdout.write(f"{summary.new:,} new, {summary.known:,} already stored.")

    def _report_line(self, number: int, reason: str) -> None:
        """Print an invalid line's number and reason, for the first MAX_NAMED_LINES lines only."""
        self._named += 1
        if self._named <= MAX_NAMED_LINES:
            self.stderr.write(f"{self._path}:{number}: {reason}")
