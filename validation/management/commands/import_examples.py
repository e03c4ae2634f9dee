"""Import a file of examples that were written and judged elsewhere."""

import json
import re
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import IntegrityError, OperationalError

from tasks.formats import FORMATS
from tasks.formats.base import UNKNOWN_TERMS, RecordLine, Terms
from tasks.formats.reading import iter_record_lines
from tasks.line_files import BadRow, FileError, LineError, get_ending, iter_unpacked_lines
from tasks.management.datasets import (
    DATASET_SOURCES,
    add_dataset_arguments,
    is_dataset_source,
    open_dataset,
)
from tasks.table_files import DELIMITERS, read_table
from validation.consensus.consensus import Policy
from validation.imports.load import import_examples
from validation.imports.summary import LineNumber, Summary
from validation.imports.task import ImportRefused, Options

# A longer line is not an example, and must not fill the memory.
MAX_LINE_BYTES = 16 * 2**20
CODE_PATTERN = re.compile("[a-z0-9][a-z0-9-]*")
# In a wrong file, all lines are bad; the first few show why.
MAX_NAMED_LINES = 50
NO_HEADER_MESSAGE = "the first row names the columns, each once; correct it"
NO_INDEX_MESSAGE = (
    "the first column has no name, as where pandas writes its index; name it, or save without it "
    "(index=False)"
)
NO_LINES_MESSAGES = {
    b"PK\x03\x04": "It is a spreadsheet or an archive. Save it as CSV, or name its --from.",
    b"PAR1": "It is Parquet. Say --from datasets.",
}
"""Messages about files that contain no lines, by the bytes with which these begin."""
OPTION_NAMES = ("task", "create", "owner", "round", "policy", "skip_bad", "judge", "labels",
                "dry_run", "question", "has_free_text", "step_labels")  # fmt: skip


class Command(BaseCommand):
    help = "Import examples with their votes, or rows to be judged. Running it again adds nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            help="JSONL, or with --judge also .csv and .tsv, in UTF-8, gzip is recognised; or what "
            "--from says",
        )
        parser.add_argument(
            "--from",
            dest="source",
            choices=[*FORMATS, *DATASET_SOURCES],
            help="the layout of the file, or of the files in a folder or a .zip archive; hub: FILE "
            "is the name or address of a data set; datasets: a folder of that library",
        )
        add_dataset_arguments(parser)
        parser.add_argument("--task", metavar="CODE", help="instead of the task each row names")
        parser.add_argument(
            "--create", action="store_true", help="create the task if it does not exist"
        )
        parser.add_argument(
            "--owner",
            default="",
            metavar="EMAIL",
            help="owner of a new task; default: the superuser",
        )
        parser.add_argument("--round", type=_parse_round_number, help="instead of each row's round")
        parser.add_argument(
            "--policy",
            type=_parse_policy,
            help="n-equal:3, at-least:3, strict, plurality or dawid-skene:0.8; default: the task's",
        )
        parser.add_argument("--judge", action="store_true", help="have people judge all of them")
        parser.add_argument(
            "--labels",
            type=_parse_labels,
            default=(),
            metavar="A,B,C",
            help="labels of a new task; default: the labels of the rows",
        )
        parser.add_argument(
            "--steps",
            dest="step_labels",
            type=_parse_labels,
            default=(),
            metavar="A,B,C",
            help="have people judge each step of a new task's conversation, too, with these labels",
        )
        parser.add_argument(
            "--question",
            default="",
            metavar="NAME",
            help="the question whose answers are the votes",
        )
        parser.add_argument(
            "--free",
            dest="has_free_text",
            action="store_true",
            help="answers of a new task are texts, not labels",
        )
        parser.add_argument(
            "--skip-bad", action="store_true", help="collect bad lines in FILE.bad and continue"
        )

        parser.add_argument(
            "--dry-run", action="store_true", help="show what would be stored, without storing it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self._check_options(options)
        with ExitStack() as stack:
            self._named = self._read = 0
            self._collected: IO[bytes] | None = None
            self._name, self._stack = options["file"], stack
            should_collect = options["skip_bad"] and not options["dry_run"]
            try:
                name, terms, lines = self._open_file(options)
                source_description = {option: options[option] for option in OPTION_NAMES}
                summary = import_examples(
                    lines=lines,
                    options=Options(name, terms=terms, **source_description),
                    on_bad_line=self._store_bad_line if should_collect else self._report_line,
                    on_progress=self._show_progress,
                )
            except ImportRefused as error:
                raise CommandError(str(error)) from None
            except FileError as error:
                raise CommandError(f"{self._name}: {error} Nothing was stored.") from None
            except OSError as error:
                raise CommandError(f"{error.filename or self._name}: {error.strerror}.") from None
            except (OperationalError, IntegrityError) as error:  # probably another import
                raise CommandError(
                    f"Nothing was stored; try again in a while: {str(error).splitlines()[0]}"
                ) from None
        if options["source"] and not (
            summary.new_count or summary.known_count or summary.bad_count
        ):
            raise CommandError(f"{self._name}: It holds no examples. Nothing was stored.")
        self._print_summary(summary, should_collect)
        if options["dry_run"]:
            self.stdout.write("Nothing was stored, as --dry-run asks.")

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """Raise CommandError for arguments that don't go together."""
        source, code = options["source"], options["task"]
        if code and not CODE_PATTERN.fullmatch(code):
            raise CommandError(f"--task: {code!r} isn't a code; use a-z, 0-9 and hyphens.")
        if source and not options["task"]:
            raise CommandError("--from needs --task CODE: these files name no task.")
        if options["question"] and not (source in FORMATS and FORMATS[source].select_answers):
            tools = ", ".join(name for name, form in FORMATS.items() if form.select_answers)
            raise CommandError(f"--question goes with --from {tools}.")
        if options["has_free_text"] and options["labels"]:
            raise CommandError("Answers are labels or texts: give --labels or --free.")
        is_plain_table = not source and get_ending(options["file"]) in DELIMITERS
        is_table = is_plain_table or is_dataset_source(options)
        if is_table and not options["judge"]:
            raise CommandError("A table holds rows for --judge. History comes in as JSONL.")

    def _open_file(
        self, options: Mapping[str, Any]
    ) -> tuple[str, Terms, Iterator[tuple[int, bytes]] | Iterator[RecordLine]]:
        """Return the name of the rows, their terms, and an iterator over the rows."""
        path = Path(options["file"])
        self._bad_file = path.with_name(f"{path.name}.bad")
        if source := FORMATS.get(options["source"]):
            return path.name, source.terms, iter_record_lines(path, source, options["question"])
        if not is_dataset_source(options):
            return (
                path.name,
                UNKNOWN_TERMS,
                _iterate_lines(path, self._stack.enter_context(path.open("rb"))),
            )
        dataset, rows = self._stack.enter_context(open_dataset(options, is_plain=True))
        self._bad_file = Path(f"{path.name}.bad")
        opened = self._stack.enter_context(rows.open("rb"))
        return dataset.title, dataset.terms, _iterate_lines(rows, opened)

    def _report_line(self, line_number: LineNumber, line: bytes, reason: str) -> None:
        """Report an invalid line on stderr; only the first ones."""
        self._named += 1
        if self._named <= MAX_NAMED_LINES:
            self.stderr.write(f"{self._name}:{line_number}: {reason}")
        elif self._named == MAX_NAMED_LINES + 1:
            self.stderr.write(f"{self._name}:{line_number}: and maybe more")

    def _store_bad_line(self, line_number: LineNumber, line: bytes, reason: str) -> None:
        """Report an invalid line and write it unchanged to the file of bad lines."""
        self._report_line(line_number, line, reason)
        # Opened at the first bad line, so that a good file creates none.
        if self._collected is None:
            self._collected = self._stack.enter_context(self._bad_file.open("wb"))
        self._collected.write(line.rstrip(b"\r\n") + b"\n")

    def _show_progress(self, lines: int) -> None:
        self._read = lines
        # One line that is overwritten; a log gets a line for every ten thousand.
        if self.stderr.isatty():
            self.stderr.write(f"\r{lines:,} lines", ending="")
        elif lines % 10_000 == 0:
            self.stderr.write(f"{lines:,} lines")

    def _print_summary(self, summary: Summary, should_collect: bool) -> None:
        self.stderr.write(f"{chr(13) if self.stderr.isatty() else ''}{self._read:,} lines read")
        for name, count in summary.new_by_round.items():
            self.stdout.write(f"{name}: {count:,} new")
        for sentence in summary.list_notes():
            self.stdout.write(sentence)
        bad_file = f" in {self._bad_file}" if should_collect else ""
        bad_lines_note = f", {summary.bad_count:,} bad{bad_file}" if summary.bad_count else ""
        self.stdout.write(
            f"{summary.new_count:,} new, {summary.known_count:,} known before{bad_lines_note}."
        )


def _iterate_lines(path: Path, file: BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of a plain or gzip file or pipe; each row of a table as JSON.

    A line longer than MAX_LINE_BYTES is cut, so that it is not valid JSON. Raises FileError.
    """
    for first_bytes, advice in NO_LINES_MESSAGES.items():
        # Peeks without consuming, because a pipe cannot be rewound.
        if file.peek(len(first_bytes)).startswith(first_bytes):
            raise FileError(advice)
    lines = iter_unpacked_lines(file, MAX_LINE_BYTES)
    ending = get_ending(path.name)
    return _iterate_table_rows(lines, ending) if ending in DELIMITERS else enumerate(lines, 1)


def _iterate_table_rows(lines: Iterator[bytes], ending: str) -> Iterator[tuple[int, bytes]]:
    """Yield the line number of each row of a table, and the row as JSON keyed by column name.

    Raises FileError.
    """
    header: list[str] = []

    def parse_header(cells: list[str]) -> list[str]:
        header.extend(name.strip() for name in cells)
        if header and not header[0] and all(header[1:]):
            raise BadRow(NO_INDEX_MESSAGE)
        if not all(header) or len({*header}) < len(header):
            raise BadRow(NO_HEADER_MESSAGE)
        return header

    for row in read_table(lines, parse_header, lambda name, cell: cell, ending):
        if isinstance(row, LineError):
            raise FileError(f"line {row.line}: {row.message}.")
        yield row.line, json.dumps({**dict.fromkeys(header, ""), **row.values}).encode()
    if not header:
        raise FileError(f"line 1: {NO_HEADER_MESSAGE}.")


def _parse_policy(text: str) -> Policy:
    try:
        return Policy.parse(text)
    except ValueError as error:
        raise CommandError(f"--policy: {error}") from None


def _parse_labels(text: str) -> Sequence[str]:
    labels = [label.strip() for label in text.split(",")]
    if len(labels) < 2 or "" in labels or len({*labels}) < len(labels):
        raise CommandError("--labels: give at least two different labels, such as good,bad.")
    return labels


def _parse_round_number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise CommandError(f"--round: {text!r} isn't a round; give a whole number from 0.")
    return int(text)
