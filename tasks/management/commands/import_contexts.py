"""Import a file of contexts into a round."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from django.core.management.base import BaseCommand, CommandError

from core.files.storage.disk import open_scratch_folder
from core.web.refusals import raise_as_command_error
from tasks.config.schema import TaskConfig
from tasks.contexts.columns import Matching, guess_matching, list_required_fields
from tasks.contexts.files import Summary
from tasks.contexts.services import import_contexts, preview_contexts
from tasks.formats import FORMATS
from tasks.formats.base import UNKNOWN_TERMS, Format, Terms
from tasks.formats.reading import NO_QUESTION, iter_record_lines
from tasks.line_files import FileError
from tasks.management.datasets import (
    DATASET_SOURCES,
    add_dataset_arguments,
    is_dataset_source,
    open_dataset,
)
from tasks.management.lookups import build_missing_round_error, get_round, get_task
from tasks.models import Round, Task


class Command(BaseCommand):
    help = "Import contexts from a file or a data set. Running it again adds nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument(
            "file",
            help=".jsonl, .csv, .tsv, .xlsx, .xls, .ods, .txt, .zip, or what --from says",
        )
        parser.add_argument(
            "--from",
            dest="source",
            choices=list(FORMATS) + list(DATASET_SOURCES),
            help="the layout of the file; hub: FILE is the name or address of a data set; "
            "datasets: a folder of that library",
        )
        add_dataset_arguments(parser)
        parser.add_argument("--round", type=int, help="its number; default: the latest unfinished")
        parser.add_argument("--skip-bad", action="store_true", help="skip bad lines")

    def handle(self, *args: Any, **options: Any) -> None:
        task, number = get_task(options["code"]), options["round"]
        round = find_latest_unfinished_round(task) if number is None else get_round(task, number)
        with raise_as_command_error(FileError), _open_source(options) as file:
            summary = self._preview_file(round, file, options["file"])
            bad_lines = f"{summary.error_count} bad line{'' if summary.error_count == 1 else 's'}"
            if summary.error_count and not options["skip_bad"]:
                raise CommandError(
                    f"{bad_lines} cannot be stored, so nothing was stored. Fix the file, or "
                    "skip these lines with --skip-bad."
                )
            import_values: dict[str, Any] = {"file_name": file.name, "terms": file.terms}
            import_contexts(round=round, summary=summary, actor=None, **import_values)
        duplicates = summary.row_count - summary.error_count - summary.stored_count
        skipped_note = ""
        if summary.error_count:
            skipped_note = f", {bad_lines} left out"
        self.stdout.write(
            f"{round}: {summary.stored_count} new, {duplicates} duplicates{skipped_note}."
        )

    def _preview_file(self, round: Round, file: "_ContextsFile", path: str) -> Summary:
        """Return the summary of a file; print every invalid line to stderr."""
        matching = file.match_columns(round.task.config)
        try:
            with file.path.open("rb") as lines:
                summary = preview_contexts(
                    round=round, lines=lines, file_name=file.path.name, matching=matching
                )
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}.") from None
        for line_error in summary.errors:
            self.stderr.write(f"{path}:{line_error.line}: {line_error.message}")
        if summary.error_count > len(summary.errors):
            self.stderr.write(f"{path}: and {summary.error_count - len(summary.errors)} more")
        return summary


class _ContextsFile(NamedTuple):
    """A file of contexts.

    name: the name of the import. columns: the names of its columns; None if they are named like
    fields.
    """

    path: Path
    name: str
    terms: Terms = UNKNOWN_TERMS
    columns: Sequence[str] | None = None

    def match_columns(self, config: TaskConfig) -> Matching | None:
        """Return the field that each column fills; None if columns are named like fields.

        Raises FileError.
        """
        if self.columns is None:
            return None
        fields_by_column = guess_matching(self.columns, config)
        if missing := set(list_required_fields(config)) - set(fields_by_column.values()):
            raise FileError(
                f"No column fills {', '.join(sorted(missing))}; there are "
                f"{', '.join(self.columns)}. Match them with --columns FIELD=COLUMN."
            )
        return fields_by_column


@contextmanager
def _open_source(options: Mapping[str, Any]) -> Iterator[_ContextsFile]:
    """Open the source that the arguments name, and yield it as a file. Raises FileError."""
    path = Path(options["file"])
    source = FORMATS.get(options["source"])
    if is_dataset_source(options, ignored_names=["columns"] if source else []):
        with open_dataset(options, is_plain=False) as (dataset, rows):
            columns = list(options["columns"]) or dataset.columns
            yield _ContextsFile(rows, dataset.title, dataset.terms, columns)
    elif source:
        with open_scratch_folder() as folder:
            rows = folder / "rows.jsonl"
            names: dict[str, None] = {}
            with rows.open("wb") as lines:
                # Written as JSON lines first, since all columns must be known before they are
                # matched.
                for record in _iter_visible_fields(path, source, options["columns"]):
                    names |= dict.fromkeys(record)
                    lines.write(json.dumps(record).encode() + b"\n")
            yield _ContextsFile(rows, path.name, source.terms, list(names))
    else:
        yield _ContextsFile(path, path.name)


def _iter_visible_fields(
    path: Path, source: Format, columns: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the fields of each record that people read. Raises FileError.

    columns: the column for each field; empty for all columns under their own names.
    """
    for line in iter_record_lines(path, source, NO_QUESTION):
        if line.error:
            raise FileError(f"{line.position}: {line.error}.")
        if line.row is None:
            continue
        visible_fields = {**line.row.get("context", {}), **line.row.get("input", {})}
        if not columns:
            yield visible_fields
            continue
        if missing_columns := set(columns.values()) - visible_fields.keys():
            columns_note = "there are none"
            if visible_fields:
                columns_note = f"there are {', '.join(visible_fields)}"
            raise FileError(
                f"{line.position}: no column {', '.join(sorted(missing_columns))}; {columns_note}."
            )
        yield {field: visible_fields[column] for field, column in columns.items()}


def find_latest_unfinished_round(task: Task) -> Round:
    """Return the latest round that still accepts contexts. Raises CommandError."""
    unfinished_rounds = task.rounds.select_related("task").exclude(state__in=Round.FINISHED_STATES)
    if round := unfinished_rounds.order_by("number").last():
        return round
    raise build_missing_round_error(task, "round that takes contexts")
