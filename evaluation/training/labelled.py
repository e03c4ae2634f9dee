"""Train a target on rows that its owners have labelled elsewhere."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Refused
from evaluation.models import TrainingRun
from evaluation.task_shape import Untrainable, trainable_shape_of, training_row
from evaluation.training.services import ROWS, find_default_base, request_training
from tasks.config.components import Component
from tasks.config.schema import TaskConfig
from tasks.contexts.columns import Matching, OtherFields
from tasks.contexts.files import Summary
from tasks.contexts.services import read_untrusted_file
from tasks.formats.base import UNKNOWN_TERMS, Terms
from tasks.line_files import FileError
from tasks.models import Round

FEWEST, MOST = 100, 5000


def find_labelled_fields(config: TaskConfig) -> OtherFields:
    """Return the columns of a file of labelled rows: the model's inputs and the correct answer.

    Raises Refused if no model for the task can be trained on this site.
    """
    try:
        shape = trainable_shape_of(config)
    except Untrainable as error:
        raise Refused(str(error), code="training") from None
    answer = config.component(shape.answer)
    kind = "multiclass" if shape.labels else "long_text"
    # A file needs every field and the right answer as such: rules are for people who write.
    plain = {"when": None, "required": True, "min_length": None, "max_length": None}
    fields = [config.component(name).model_copy(update=plain) for name in shape.fields]
    fields.append(Component(name=answer.name, label=answer.label, type=kind, labels=answer.labels))
    return OtherFields(tuple(fields))


def preview_labelled(
    *, round: Round, lines: Iterable[bytes], file_name: str, matching: Matching | None = None
) -> Summary:
    """Return a summary of the rows in a file. Nothing is stored. Raises Refused, FileError."""
    if file_name.lower().endswith(".zip"):
        raise FileError(_("Rows come in a table, not in an archive."))
    return read_untrusted_file(
        lines, file_name, find_labelled_fields(round.task.config), round.task, (), matching
    )


def request_labelled_training(
    *, round: Round, found: Summary, file_name: str, actor: User, terms: Terms = UNKNOWN_TERMS
) -> TrainingRun:
    """Request a training on the good rows of a preview; return it. Raises Refused.

    terms: ignored.
    """
    shape = trainable_shape_of(round.task.config)
    # A line is a group of its own: nobody knows who wrote these rows.
    rows: list[Mapping[str, Any]] = []
    for good_row in found.rows:
        row = training_row(shape, good_row.values, good_row.values[shape.answer])
        if row:
            rows.append({**row, "group": str(good_row.line)})
    if not FEWEST <= len(rows) <= MOST:
        message = _("A training needs %(fewest)d to %(most)d rows; here are %(number)d good ones.")
        numbers = {"fewest": FEWEST, "most": MOST, "number": len(rows)}
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
