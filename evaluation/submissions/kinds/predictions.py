"""A file of answers that a submitter's own model gave to one set."""

from functools import partial
from pathlib import Path
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from core.files.bounded import run_bounded
from evaluation.isolation.inference.precheck import ForeignIds, SubmissionRefused, store_predictions
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.uploads.chunked import assemble_upload
from evaluation.kinds import JointSettings
from evaluation.models import Submission
from evaluation.submissions.forms import SubmitForm, make_answer_line
from evaluation.submissions.kinds.base import SubmissionKind
from evaluation.submissions.receiving import ANSWERS_BOUNDS, ReceivedModel, find_uploaded_file
from evaluation.submissions.requirements import Problem, Sources
from evaluation.test_sets.selectors import (
    describe_set_of_ids,
    read_input_rows,
    select_open_versions,
)
from tasks.models import Task


class PredictionsForm(SubmitForm):
    """A form for a set and the file of predictions for it."""

    intro = "evaluation/_open_sets.html"
    file_help = _(
        "JSON lines such as %(answer)s, or a log of this task from "
        "lm-evaluation-harness (--log_samples) or Inspect (.eval)."
    )

    def add_fields(self, task: Task) -> None:
        """Offer the sets whose inputs can be downloaded."""
        self.fields["evaluation_set"] = forms.ModelChoiceField(
            label=_("Test set"),
            empty_label=_("Choose a test set"),
            queryset=select_open_versions(task),
            help_text=_(
                "Only sets with downloadable inputs. Each line of your file contains the ID of one "
                "example."
            ),
        )

    def make_example_lines(self, task: Task) -> dict[str, Any]:
        """Return an example line of the file."""
        return {"answer": make_answer_line(task.config, prob=None)}


class Predictions(SubmissionKind, name="predictions"):
    """Predictions for one set, which are scored directly. There is no model to call."""

    label = _("a predictions file")
    place = 5
    title = _("Predictions file")
    words = _("Your own answers to a test set.")
    details = _(
        "For sets with downloadable inputs. Files with the same name for other sets belong to the "
        "same model. We don't measure speed, memory or robustness."
    )
    answers = "file"
    joint = JointSettings(
        _("Predictions: an archive with a file for each set"), place=1, file_for="set"
    )
    form = PredictionsForm

    def find_problem(self, sources: Sources) -> Problem | None:
        """Return the problem if the file or its set is missing; None if both are there."""
        if not sources.has_upload:
            return "upload", gettext_noop("Choose the predictions file (JSON lines).")
        if not sources.has_set:
            return "evaluation_set", gettext_noop("Choose the test set for these predictions.")
        return None

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Check every line of the file against its set.

        Raises SubmissionRefused. If all ids belong to another open set, its message names that set.
        """
        version = submission.evaluation_set
        assert version is not None  # `find_problem` refuses predictions without a set
        uids = [row["uid"] for row in read_input_rows(version)]
        packed_path = folder / "predictions.jsonl.gz"
        with assemble_upload(find_uploaded_file(submission), heartbeat.beat) as path:
            store_checked = partial(
                store_predictions, submission.task.config, uids, path, packed_path
            )
            try:
                digest = run_bounded(store_checked, ANSWERS_BOUNDS, heartbeat.beat)
            except ForeignIds as refusal:
                other_set = describe_set_of_ids(submission.task, refusal.ids)
                raise SubmissionRefused(f"{refusal} {other_set}", refusal.outcome) from None
        return ReceivedModel(digest, packed_path.stat().st_size, packed_path)
