"""Files of annotation tools and data sets with their answers, from a form: preview and storing."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import annotator_of
from core.errors import Refused
from tasks.formats import FORMATS
from tasks.formats.base import UNKNOWN_TERMS, RecordLine
from tasks.formats.reading import iter_record_lines
from tasks.line_files import iter_unpacked_lines
from tasks.models import Round
from tasks.permissions import is_blind_owner
from validation.imports.load import import_examples
from validation.imports.summary import Place, Summary
from validation.imports.task import ImportRefused, Options
from validation.judging.blind_services import note_told_examples, told_examples

HISTORY = "history"
"""Rows as the command without `--from` reads them."""
LAYOUTS = frozenset({*FORMATS, HISTORY})
# A longer line is no example, and must not fill the memory.
LONGEST_LINE = 16 * 2**20
# In a wrong file all lines are bad; the first ones tell why.
MOST_NAMED = 50
# Of the end of a name, which has the ending.
LONGEST_NAME = 100


@dataclass(frozen=True)
class ReadOptions:
    """The options for reading a file.

    question: the question whose answers are the votes. judge: people judge the examples here.
    """

    layout: str
    question: str = ""
    judge: bool = False


@dataclass
class ImportResult:
    """The summary of a file, and the first lines that cannot be stored, with the reasons."""

    summary: Summary
    bad: list[tuple[Place, str]] = field(default_factory=list)


def import_answers(
    *, round: Round, path: Path, file_name: str, wanted: ReadOptions, actor: User, dry_run: bool
) -> ImportResult:
    """Store the valid examples of a file with their votes. dry_run: only return the summary.

    Locks the task, as every import does. A blind owner knows the labels and votes that they import.
    Raises Refused, FileError.
    """
    if round.state == Round.State.RELEASED:
        message = _("%(round)s is released and does not change any more.")
        raise Refused(message % {"round": round}, code="released")
    bad_rows: list[tuple[Place, str]] = []

    def note_bad(place: Place, _line: bytes, reason: str) -> None:
        if len(bad_rows) < MOST_NAMED:
            bad_rows.append((place, reason))

    form = FORMATS.get(wanted.layout)
    options = Options(
        file_name, task=round.task.code, round=round.number, skip_bad=True, judge=wanted.judge,
        question=wanted.question, actor=actor, dry_run=dry_run,
        terms=form.terms if form else UNKNOWN_TERMS,
    )  # fmt: skip
    try:
        with _lines(path, file_name, wanted) as lines:
            import_result = import_examples(lines=lines, options=options, on_bad=note_bad)
    except ImportRefused as error:
        raise Refused(str(error), code="import") from None
    # Owners who judge blind know what they have brought, so they never judge it.
    if not dry_run and is_blind_owner(actor, round.task):
        annotator = annotator_of(actor)
        brought = told_examples(round.task, annotator).filter(round=round, uid__isnull=False)
        note_told_examples(annotator, brought)
    return ImportResult(import_result, bad_rows)


@contextmanager
def _lines(
    path: Path, file_name: str, wanted: ReadOptions
) -> Iterator[Iterator[tuple[int, bytes]] | Iterator[RecordLine]]:
    """Yield the lines of an upload, whose stored name has no file extension."""
    form = FORMATS.get(wanted.layout)
    if form is None:
        with path.open("rb") as file:
            yield enumerate(iter_unpacked_lines(file, LONGEST_LINE), 1)
        return
    with TemporaryDirectory() as folder:
        # Readers tell files apart by their endings, so it gets its own name back.
        named = Path(folder) / (Path(file_name).name[-LONGEST_NAME:] or "rows")
        shutil.copyfile(path, named)
        yield iter_record_lines(named, form, wanted.question if form.only else "")
