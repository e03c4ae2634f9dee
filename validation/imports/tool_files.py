"""Imports, from a form, of files of annotation tools and data sets with their answers."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import get_annotator
from core.errors import Refused
from tasks.formats import FORMATS
from tasks.formats.base import UNKNOWN_TERMS, RecordLine
from tasks.formats.reading import iter_record_lines
from tasks.line_files import iter_unpacked_lines
from tasks.models import Round
from tasks.permissions import is_blind_owner
from validation.imports.load import import_examples
from validation.imports.summary import LineNumber, Summary
from validation.imports.task import ImportRefused, Options
from validation.judging.blind_services import note_readable_examples, select_readable_examples

HISTORY_LAYOUT = "history"
"""The layout of rows that the command reads without `--from`."""
LAYOUTS = frozenset({*FORMATS, HISTORY_LAYOUT})
# A longer line is not an example, and must not fill the memory.
MAX_LINE_BYTES = 16 * 2**20
# In a wrong file, all lines are bad; the first few show why.
MAX_NAMED_LINES = 50
# From the end of the name, to keep its extension.
MAX_NAME_CHARS = 100


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
    bad_lines: list[tuple[LineNumber, str]] = field(default_factory=list)


def import_answers(
    *,
    round: Round,
    path: Path,
    file_name: str,
    read_options: ReadOptions,
    actor: User,
    dry_run: bool,
) -> ImportResult:
    """Store the valid examples of a file with their votes. dry_run: only return the summary.

    Locks the task. If an owner who judges blind imports the file, records that they know its labels
    and votes. Raises Refused, FileError.
    """
    if round.state == Round.State.RELEASED:
        message = _("%(round)s is released and can't change anymore. Choose another round.")
        raise Refused(message % {"round": round}, code="released")
    bad_rows: list[tuple[LineNumber, str]] = []

    def note_bad(line_number: LineNumber, _line: bytes, reason: str) -> None:
        if len(bad_rows) < MAX_NAMED_LINES:
            bad_rows.append((line_number, reason))

    form = FORMATS.get(read_options.layout)
    options = Options(
        file_name, task=round.task.code, round=round.number, skip_bad=True,
        judge=read_options.judge, question=read_options.question, actor=actor, dry_run=dry_run,
        terms=form.terms if form else UNKNOWN_TERMS,
    )  # fmt: skip
    try:
        with _open_lines(path, file_name, read_options) as lines:
            import_result = import_examples(lines=lines, options=options, on_bad_line=note_bad)
    except ImportRefused as error:
        raise Refused(str(error), code="import") from None
    # Owners who judge blind know the examples they imported, so they never judge these.
    if not dry_run and is_blind_owner(actor, round.task):
        annotator = get_annotator(actor)
        imported_examples = select_readable_examples(round.task, annotator).filter(
            round=round, uid__isnull=False
        )
        note_readable_examples(annotator, imported_examples)
    return ImportResult(import_result, bad_rows)


@contextmanager
def _open_lines(
    path: Path, file_name: str, read_options: ReadOptions
) -> Iterator[Iterator[tuple[int, bytes]] | Iterator[RecordLine]]:
    """Yield the lines of an upload, whose stored name has no file extension."""
    form = FORMATS.get(read_options.layout)
    if form is None:
        with path.open("rb") as file:
            yield enumerate(iter_unpacked_lines(file, MAX_LINE_BYTES), 1)
        return
    with TemporaryDirectory() as folder:
        # Readers recognise files by their extension, so its original name is restored.
        named_path = Path(folder) / (Path(file_name).name[-MAX_NAME_CHARS:] or "rows")
        shutil.copyfile(path, named_path)
        yield iter_record_lines(
            named_path, form, read_options.question if form.select_answers else ""
        )
