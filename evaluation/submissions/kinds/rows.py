"""Training data: rows from which the one model of the task's data board learns."""

from functools import partial
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from core.files.bounded import bounded
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.uploads.chunked import assemble
from evaluation.kinds import Joint
from evaluation.models import Submission, TrainedRows
from evaluation.runs.carriers import open_trainer
from evaluation.submissions.forms import SubmitForm
from evaluation.submissions.kinds.base import SubmissionKind
from evaluation.submissions.receiving import (
    READING_BOUNDS,
    ReceivedModel,
    find_uploaded_file,
    receive_weights,
)
from evaluation.submissions.requirements import Problem, Sources
from evaluation.submissions.training_data import (
    compute_digests,
    count_rows,
    read_training_rows,
    train_on_rows,
)
from evaluation.training.row_files import read_rows
from tasks.models import Task


class RowsForm(SubmitForm):
    """A form for a file of training rows."""

    file_help = _(
        "JSON lines: the fields that models read and their label, or %(row)s for a row of a "
        "released train split."
    )

    def lines(self, task: Task) -> dict[str, Any]:
        """Return an example line of the file."""
        return {"row": '{"uid": "…"}'}


class Rows(SubmissionKind, name="rows"):
    """Training rows, for a task that takes training data instead of models."""

    label = _("training rows, from which one model learns")
    place = 8
    title = _("Training data")
    words = _(
        "Rows, or uids of released ones. The same model learns from each submission here, so "
        "that the data alone decides."
    )
    answers = "sandbox"
    learns_here = True
    joint = Joint(
        _("Training data: an archive with a file for each task"), place=5, file_for="task"
    )
    form = RowsForm

    def problem(self, sources: Sources) -> Problem | None:
        """Require the file."""
        if sources.has_upload:
            return None
        return "upload", gettext_noop("Choose the file with the rows (JSON lines).")

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Train the model of the task's data board on the submitted rows."""
        task = submission.task
        with assemble(find_uploaded_file(submission), heartbeat.beat) as path:
            read = partial(read_rows, path, task.config.training_rows or 0)
            numbered_rows = bounded(read, READING_BOUNDS, heartbeat.beat)
            rows = read_training_rows(task, numbered_rows)
        # Not with the rest of the check, because no other kind has them. A check that begins again
        # writes the same.
        facts = count_rows(numbered_rows, rows)
        Submission.objects.filter(pk=submission.pk).update(data=facts)
        if digests := compute_digests(task, rows):
            TrainedRows.objects.update_or_create(
                submission=submission, defaults={"digests": digests}
            )
        heartbeat.begin(0.2, gettext_noop("learning from the rows"))
        model = folder / "model"
        with open_trainer(heartbeat.beat) as trainer:
            train_on_rows(task.config, rows, model, trainer)
        return receive_weights(submission, model, folder, heartbeat)
