"""A reader of an import's lines, which yields checked rows and reports invalid lines."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from tasks.contexts.files import hash_context
from tasks.formats.base import RecordLine
from tasks.line_files import BadRow
from tasks.models import Task
from validation.imports.rows import HistoryRow, drop_repeated_votes, parse_line, read_row
from validation.imports.summary import REPEATED_VOTES, LineNumber, Summary
from validation.imports.task import ImportRefused, Options

# The number of rows in memory. The number of queries per batch does not depend on it.
BATCH_LINES = 1000
_sorted_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
BadLineCallback = Callable[[LineNumber, bytes, str], None]
"""Called for each bad line, with its location, its bytes and the reason."""


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A valid row and its location in the file."""

    position: LineNumber
    text: bytes
    row: HistoryRow
    digest: str
    context: str  # the context's digest


class LineReader:
    """A reader for one file, which counts errors and values that are not stored in the summary.

    has_free_text: the source says that answers are free texts, not labels.
    """

    def __init__(self, options: Options, summary: Summary, on_bad_line: BadLineCallback):
        self._options, self._summary, self._on_bad_line = options, summary, on_bad_line
        self._plain_row_fields = _find_plain_row_fields(options)
        self._question = ""
        self.has_free_text = options.has_free_text

    def iterate_batches(
        self, lines: Iterable[tuple[int, bytes] | RecordLine]
    ) -> Iterator[tuple[int, list[ParsedLine]]]:
        """Yield batches of valid lines, each with the number of lines read so far."""
        remaining_lines, line_count = iter(lines), 0
        while chunk := list(islice(remaining_lines, BATCH_LINES)):
            line_count += len(chunk)
            yield (
                line_count,
                [line for numbered_line in chunk if (line := self._parse_line(numbered_line))],
            )

    def note_bad_line(self, line_number: LineNumber, text: bytes, reason: str) -> None:
        """Count and report a line that cannot be stored."""
        self._summary.bad_count += 1
        self._on_bad_line(line_number, text, reason)

    def check_question_was_found(self) -> None:
        """Raise ImportRefused if no row answers the requested question."""
        question = self._options.question
        if question and not self._question:
            raise ImportRefused(f"The file has no answers to a question {question!r}.")

    def _parse_line(self, line: tuple[int, bytes] | RecordLine) -> ParsedLine | None:
        line_number, text, *_ = line
        try:
            if isinstance(line, RecordLine):
                row = self._read_row(line)
            else:
                row = parse_line(text, *self._plain_row_fields) if text.strip() else None
        except BadRow as error:
            self.note_bad_line(line_number, text, str(error))
            return None
        # An empty line, or a record without an example.
        if row is None:
            return None
        # On the site a person votes once on an example, so imported votes count the same way.
        row, repeated_workers = drop_repeated_votes(row)
        for worker in repeated_workers:
            self._summary.note_left_out(REPEATED_VOTES, f"{worker} on {row.uid}")
        if isinstance(line, RecordLine):
            self._note_record(line)
        return ParsedLine(line_number, text, row, _hash_row(row), hash_context(dict(row.context)))

    def _read_row(self, line: RecordLine) -> HistoryRow | None:
        """Return the row for a layout's record. Raises BadRow."""
        if line.error:
            raise BadRow(line.error)
        self._check_question(line.questions)
        return read_row(line.row, self._options.task or "") if line.row else None

    def _check_question(self, questions: Iterable[str]) -> None:
        """Raise BadRow for answers to a second question, which would count for the first."""
        for question in questions:
            self._question = self._question or question
            if question != self._question:
                raise BadRow(
                    f"it has answers to `{question}`, and others are to `{self._question}`; name "
                    "one of them with --question"
                )

    def _note_record(self, line: RecordLine) -> None:
        self.has_free_text |= line.has_free_text
        for reason, count in line.left_out_counts.items():
            self._summary.note_left_out(reason, line.position, count)
        for reason, count in line.note_counts.items():
            self._summary.note_stored(reason, line.position, count)


def _find_plain_row_fields(options: Options) -> tuple[str, list[str]]:
    """Return the code and the context fields of the task of plain rows; empty without --judge."""
    code = options.task or ""
    if not (options.judge and code):
        return "", []
    task = Task.objects.filter(code=code).first()
    return code, [component.name for component in task.config.context] if task else []


def _hash_row(row: HistoryRow) -> str:
    """Hash a row without its votes and answers, to recognise the same example under one uid."""
    text = _sorted_json([row.uid, row.context, row.input, row.author_label])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
