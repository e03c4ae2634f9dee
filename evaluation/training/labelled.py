"""Train a target on rows that its owners have labelled elsewhere."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Refused
from evaluation.models import TrainingRun
from evaluation.task_shape import UntrainableTask, build_trainable_shape, build_training_row
from evaluation.training.services import ROWS, find_default_base, request_training
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.contexts.columns import Matching, OtherFields
from tasks.contexts.files import Summary
from tasks.contexts.services import read_untrusted_file
from tasks.formats.base import UNKNOWN_TERMS, Terms
from tasks.line_files import FileError
from tasks.models import Round

MIN_LABELLED_ROWS, MAX_LABELLED_ROWS = 100, 5000


def find_labelled_fields(config: TaskConfig) -> OtherFields:
    """Return the columns of a file of labelled rows: the model's inputs and the correct answer.

    Raises Refused if no model for the task can be trained on this site.
    """
    try:
        shape = build_trainable_shape(config)
    except UntrainableTask as error:
        raise Refused(str(error), code="training") from None
    answer = config.get_component(shape.answer)
    kind = "multiclass" if shape.labels else "long_text"
    # A file needs every field and the right answer itself; rules are only for writers.
    plain_options = {"when": None, "required": True, "min_length": None, "max_length": None}
    fields = [config.get_component(name).model_copy(update=plain_options) for name in shape.fields]
    fields.append(Component(name=answer.name, label=answer.label, type=kind, labels=answer.labels))
    return OtherFields(tuple(fields))


def preview_labelled_rows(
    *, round: Round, lines: Iterable[bytes], file_name: str, matching: Matching | None = None
) -> Summary:
    """Return a summary of the rows in a file. Nothing is stored.

    matching: the field that each column fills; None if the columns are named like fields. Raises
    Refused and FileError.
    """
    if file_name.lower().endswith(".zip"):
        raise FileError(_("Upload the rows as a table, not as an archive."))
    return read_untrusted_file(
        lines, file_name, find_labelled_fields(round.task.config), round.task, (), matching
    )


def request_labelled_training(
    *, round: Round, summary: Summary, file_name: str, actor: User, terms: Terms = UNKNOWN_TERMS
) -> TrainingRun:
    """Request a training run on the good rows of a preview; return it. Raises Refused.

    terms: ignored.
    """
    shape = build_trainable_shape(round.task.config)
    # Each line is its own group, because the authors are unknown.
    rows: list[Mapping[str, Any]] = []
    for good_row in summary.rows:
        row = build_training_row(shape, good_row.values, good_row.values[shape.answer])
        if row:
            rows.append({**row, "group": str(good_row.line)})
    if not MIN_LABELLED_ROWS <= len(rows) <= MAX_LABELLED_ROWS:
        message = _(
            "Training needs between %(fewest)d and %(most)d rows. Valid rows in this "
            "file: %(number)d."
        )
        numbers = {"fewest": MIN_LABELLED_ROWS, "most": MAX_LABELLED_ROWS, "number": len(rows)}
        raise Refused(message % numbers, code="training")
    base, revision = find_default_base(round.task)
    return request_training(
        task=round.task,
        actor=actor,
        weights={ROWS: 1.0},
        rows=rows,
        file_name=file_name,
        base=base,
        revision=revision,
    )
