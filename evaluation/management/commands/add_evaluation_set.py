"""Create an evaluation set from a file, or the next version of one."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.template.defaultfilters import pluralize

from core.errors import Refused
from evaluation.models import EvaluationSet, EvaluationSetVersion
from evaluation.test_sets.parsing import InvalidLines, SetFile
from evaluation.test_sets.services import Access, create_set_with_version, make_version
from tasks.line_files import FileError
from tasks.management.lookups import get_task
from tasks.models import Task


class Command(BaseCommand):
    help = "Make an evaluation set of a file, or its next version. The same file adds nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument("file", type=Path, help=".jsonl, .jsonl.gz, .csv or .parquet")
        parser.add_argument("--name", required=True, help="of the set, such as reviews-2024")
        parser.add_argument(
            "--access", choices=Access.values, help=f"of a new set; default: {Access.SCORING}"
        )
        parser.add_argument(
            "--may-leave",
            action="store_true",
            help="the inputs of a new set may be downloaded and sent to remote models",
        )
        parser.add_argument(
            "--answers-public",
            action="store_true",
            help="a new set is not sealed: its scores are shown exactly, and by slice",
        )
        parser.add_argument("--skip-bad", action="store_true", help="skip wrong lines")

    def handle(self, *args: Any, **options: Any) -> None:
        task = get_task(options["code"])
        path: Path = options["file"]
        set_file = SetFile(path, path.name, task.config, skip_bad=options["skip_bad"])
        try:
            version = self._make(task, set_file, options)
        # Wrong lines first, then the reason why the command fails.
        except (FileError, Refused, OSError) as error:
            self._write_errors(path, set_file)
            if isinstance(error, InvalidLines):
                raise CommandError(
                    "So nothing was stored. Fix the lines, or skip them with --skip-bad."
                ) from None
            raise CommandError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
        self._write_errors(path, set_file)
        left_out = "".join(
            f"; {count} left out: {reason}" for reason, count in set_file.left_out.items()
        )
        self.stdout.write(f"{version}: {version.size} example{pluralize(version.size)}{left_out}.")

    def _make(self, task: Task, set_file: SetFile, options: dict[str, Any]) -> EvaluationSetVersion:
        """Make the set with its first version, or the next version if the set exists; return it.

        Raises FileError and Refused.
        """
        evaluation_set = task.evaluation_sets.filter(name=options["name"]).first()
        if evaluation_set is None:
            set_options = {name: options[name] for name in ("name", "may_leave", "answers_public")}
            access = options["access"] or Access.SCORING
            return create_set_with_version(
                set_file, task=task, actor=None, access=access, **set_options
            )
        if evaluation_set.source != EvaluationSet.Source.UPLOAD:
            raise Refused(f"{evaluation_set} makes its versions itself; choose another name.")
        return make_version(evaluation_set, set_file, None)

    def _write_errors(self, path: Path, set_file: SetFile) -> None:
        for line_error in set_file.errors:
            self.stderr.write(f"{path}:{line_error.line}: {line_error.message}")
