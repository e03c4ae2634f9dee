"""Reads the lines of an import: a checked row of each, or the reason why it is invalid."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from tasks.contexts.files import hash_context
from tasks.formats.base import RecordLine
from tasks.line_files import BadRow
from tasks.models import Task
from validation.imports.rows import HistoryRow, keep_last_votes, parse_line, row_of
from validation.imports.summary import VOTED_AGAIN, Place, Summary
from validation.imports.task import ImportRefused, Options

# Rows in memory at a time; the queries of a batch do not grow with it.
BATCH = 1000
_sorted_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
OnBad = Callable[[Place, bytes, str], None]
"""Called with each bad line: where it stands, its bytes and the reason."""


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A valid row and its location in the file."""

    place: Place
    text: bytes
    row: HistoryRow
    digest: str
    context: str  # its digest


class LineReader:
    """A reader for one file. Errors and values that are not stored are counted in the summary.

    is_free: the source says that answers are free texts, not labels.
    """

    def __init__(self, options: Options, summary: Summary, on_bad: OnBad):
        self._options, self._summary, self._tell = options, summary, on_bad
        self._plain = _plain_rows(options)
        self._question = ""
        self.is_free = options.is_free

    def batches(
        self, lines: Iterable[tuple[int, bytes] | RecordLine]
    ) -> Iterator[tuple[int, list[ParsedLine]]]:
        """Yield batches of a few hundred valid lines, each with the number of lines read for it."""
        remaining_lines, line_count = iter(lines), 0
        while chunk := list(islice(remaining_lines, BATCH)):
            line_count += len(chunk)
            yield (
                line_count,
                [line for numbered_line in chunk if (line := self._parsed(numbered_line))],
            )

    def bad(self, place: Place, text: bytes, reason: str) -> None:
        """Count and report a line that cannot be stored."""
        self._summary.bad += 1
        self._tell(place, text, reason)

    def check_asked(self) -> None:
        """Raise ImportRefused if no row answers the requested question."""
        question = self._options.question
        if question and not self._question:
            raise ImportRefused(f"The file has no answers to a question {question!r}.")

    def _parsed(self, line: tuple[int, bytes] | RecordLine) -> ParsedLine | None:
        place, text, *_ = line
        try:
            if isinstance(line, RecordLine):
                row = self._row_of(line)
            else:
                row = parse_line(text, *self._plain) if text.strip() else None
        except BadRow as error:
            self.bad(place, text, str(error))
            return None
        # An empty line, or a record that holds no example.
        if row is None:
            return None
        # On the site a person votes once on an example, so history counts alike.
        row, again = keep_last_votes(row)
        for who in again:
            self._summary.leave(VOTED_AGAIN, f"{who} on {row.uid}")
        if isinstance(line, RecordLine):
            self._note(line)
        return ParsedLine(place, text, row, _digest(row), hash_context(dict(row.context)))

    def _row_of(self, line: RecordLine) -> HistoryRow | None:
        """Return the row for a layout's record. Raises BadRow."""
        if line.wrong:
            raise BadRow(line.wrong)
        self._check_question(line.questions)
        return row_of(line.row, self._options.task or "") if line.row else None

    def _check_question(self, questions: Iterable[str]) -> None:
        """Refuse answers to a second question, because they would count with those to the first."""
        for question in questions:
            self._question = self._question or question
            if question != self._question:
                raise BadRow(
                    f"it has answers to `{question}`, and others are to `{self._question}`; name "
                    "one of them with --question"
                )

    def _note(self, line: RecordLine) -> None:
        self.is_free |= line.is_free
        for reason, count in line.left.items():
            self._summary.leave(reason, line.place, count)
        for reason, count in line.noted.items():
            self._summary.note(reason, line.place, count)


def _plain_rows(options: Options) -> tuple[str, list[str]]:
    """Return the code of the task for plain rows, if any, and the context fields if it exists."""
    code = options.task or ""
    if not (options.judge and code):
        return "", []
    task = Task.objects.filter(code=code).first()
    return code, [component.name for component in task.config.context] if task else []


def _digest(row: HistoryRow) -> str:
    """Hash a row without its votes and answers, to recognise the same example under one uid."""
    text = _sorted_json([row.uid, row.context, row.input, row.author_label])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
