"""Import a file of contexts into a round."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dynabench.lib.refusals import as_command_error
from tasks.contexts.files import Summary
from tasks.contexts.services import FINISHED, import_contexts, preview_contexts
from tasks.line_files import FileError
from tasks.models import Round, Task


class Command(BaseCommand):
    help = "Import contexts from JSONL or CSV. Running it again adds nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument("file", type=Path, help="a .jsonl or .csv file in UTF-8")
        parser.add_argument("--round", type=int, help="its number; default: the latest unfinished")
        parser.add_argument("--skip-bad", action="store_true", help="leave bad lines out")

    def handle(self, *args: Any, **options: Any) -> None:
        round = self._round(options["code"], options["round"])
        path: Path = options["file"]
        with as_command_error(FileError):
            summary = self._check(round, path)
            if summary.error_count and not options["skip_bad"]:
                raise CommandError(
                    f"{_lines(summary.error_count)} cannot be stored, so nothing was. "
                    "Mend the file, or leave the lines out with --skip-bad."
                )
            with path.open("rb") as lines:
                new = import_contexts(round=round, lines=lines, file_name=path.name, actor=None)
        duplicates = summary.row_count - summary.error_count - new
        left_out = f", {_lines(summary.error_count)} left out" if summary.error_count else ""
        self.stdout.write(f"{round}: {new} new, {duplicates} duplicates{left_out}.")

    def _check(self, round: Round, path: Path) -> Summary:
        """The preview; every bad line goes to stderr."""
        try:
            with path.open("rb") as lines:
                summary = preview_contexts(round=round, lines=lines, file_name=path.name)
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from None
        for bad in summary.errors:
            self.stderr.write(f"{path}:{bad.line}: {bad.message}")
        if summary.error_count > len(summary.errors):
            self.stderr.write(f"{path}: and {summary.error_count - len(summary.errors)} more")
        return summary

    def _round(self, code: str, number: int | None) -> Round:
        task = Task.objects.filter(code=code).first()
        if task is None:
            known = ", ".join(Task.objects.values_list("code", flat=True))
            raise CommandError(f"There is no task {code!r}. Tasks: {known or 'none'}.")
        rounds = task.rounds.select_related("task")
        if number is None:
            found = rounds.exclude(state__in=FINISHED).order_by("number").last()
        else:
            found = rounds.filter(number=number).first()
        if found is None:
            numbers = ", ".join(f"{r.number} ({r.state})" for r in rounds)
            what = f"round {number}" if number else "round that takes contexts"
            raise CommandError(f"{code} has no {what}. Rounds: {numbers or 'none'}.")
        return found


def _lines(count: int) -> str:
    return f"{count} bad line{'' if count == 1 else 's'}"
