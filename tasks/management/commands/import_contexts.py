"""Import a file of contexts into a round."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dynabench.lib.refusals import as_command_error
from tasks.contexts.files import Summary
from tasks.contexts.services import FINISHED, import_contexts, preview_contexts
from tasks.line_files import FileError
from tasks.management.named import no_round, round_of, task_of
from tasks.models import Round, Task


class Command(BaseCommand):
    help = (
        "Import contexts from JSONL, CSV, TSV, text or an archive. Running it again adds nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument(
            "file",
            type=Path,
            help=".jsonl, .csv, .tsv, .xlsx, .xls, .ods, .txt, or a .zip of files",
        )
        parser.add_argument("--round", type=int, help="its number; default: the latest unfinished")
        parser.add_argument("--skip-bad", action="store_true", help="leave bad lines out")

    def handle(self, *args: Any, **options: Any) -> None:
        task, number = task_of(options["code"]), options["round"]
        round = latest_unfinished(task) if number is None else round_of(task, number)
        path: Path = options["file"]
        with as_command_error(FileError):
            found = self._read(round, path)
            bad = f"{found.error_count} bad line{'' if found.error_count == 1 else 's'}"
            if found.error_count and not options["skip_bad"]:
                raise CommandError(
                    f"{bad} cannot be stored, so nothing was. "
                    "Mend the file, or leave the lines out with --skip-bad."
                )
            import_contexts(round=round, found=found, file_name=path.name, actor=None)
        duplicates = found.row_count - found.error_count - found.stored
        left_out = f", {bad} left out" if found.error_count else ""
        self.stdout.write(f"{round}: {found.stored} new, {duplicates} duplicates{left_out}.")

    def _read(self, round: Round, path: Path) -> Summary:
        """What the file holds; every bad line goes to stderr."""
        try:
            with path.open("rb") as lines:
                found = preview_contexts(round=round, lines=lines, file_name=path.name)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from None
        for bad in found.errors:
            self.stderr.write(f"{path}:{bad.line}: {bad.message}")
        if found.error_count > len(found.errors):
            self.stderr.write(f"{path}: and {found.error_count - len(found.errors)} more")
        return found


def latest_unfinished(task: Task) -> Round:
    """The last round that takes contexts."""
    unfinished = task.rounds.select_related("task").exclude(state__in=FINISHED)
    if round := unfinished.order_by("number").last():
        return round
    raise no_round(task, "round that takes contexts")
