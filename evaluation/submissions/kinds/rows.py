"""Training data: rows from which the one model of the task's data board learns."""

from functools import partial
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from core.files.bounded import run_bounded
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.uploads.chunked import assemble_upload
from evaluation.kinds import JointSettings
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
        "JSON lines with the fields that models read and the label. Use %(row)s for a row of "
        "a released train split."
    )

    def make_example_lines(self, task: Task) -> dict[str, Any]:
        """Return an example line of the file."""
        return {"row": '{"uid": "…"}'}


class Rows(SubmissionKind, name="rows"):
    """Training rows, for a task that takes training data instead of models."""

    label = _("training rows for one fixed model")
    place = 8
    title = _("Training data")
    words = _("Rows, or the UIDs of released rows.")
    details = _(
        "We train the same model on each submission, so only the data makes the difference."
    )
    answers = "sandbox"
    learns_here = True
    joint = JointSettings(
        _("Training data: an archive with a file for each task"), place=5, file_for="task"
    )
    form = RowsForm

    def find_problem(self, sources: Sources) -> Problem | None:
        """Return the problem if the file is missing; None if it is there."""
        if sources.has_upload:
            return None
        return "upload", gettext_noop("Choose the file with the rows (JSON lines).")

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Train the model of the task's data board on the submitted rows.

        The facts about the rows and their digests are stored at once. Raises SubmissionRefused.
        """
        task = submission.task
        with assemble_upload(find_uploaded_file(submission), heartbeat.beat) as path:
            read_uploaded_rows = partial(read_rows, path, task.config.training_rows or 0)
            numbered_rows = run_bounded(read_uploaded_rows, READING_BOUNDS, heartbeat.beat)
            rows = read_training_rows(task, numbered_rows)
        # Separate from the check, because no other kind has them. A repeated check
        # writes the same rows.
        facts = count_rows(numbered_rows, rows)
        Submission.objects.filter(pk=submission.pk).update(data=facts)
        if digests := compute_digests(task, rows):
            TrainedRows.objects.update_or_create(
                submission=submission, defaults={"digests": digests}
            )
        heartbeat.begin_step(0.2, gettext_noop("training on the rows"))
        model = folder / "model"
        with open_trainer(heartbeat.beat) as trainer:
            train_on_rows(task.config, rows, model, trainer)
        return receive_weights(submission, model, folder, heartbeat)
