"""A file of answers that somebody's own model gave to one set."""

from functools import partial
from pathlib import Path
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from core.files.bounded import bounded
from evaluation.isolation.inference.precheck import ForeignIds, SubmissionRefused, keep_predictions
from evaluation.isolation.queue.leases import Heartbeat
from evaluation.isolation.uploads.chunked import assemble
from evaluation.kinds import Joint
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
        "JSON lines such as %(answer)s. Or what lm-evaluation-harness (--log_samples) or Inspect "
        "(.eval) wrote of the release's own task."
    )

    def add_fields(self, task: Task) -> None:
        """Offer the sets whose inputs can be downloaded."""
        self.fields["evaluation_set"] = forms.ModelChoiceField(
            label=_("For which set"),
            queryset=select_open_versions(task),
            help_text=_(
                "Sets whose inputs can be downloaded. Each line of your file has the id of one."
            ),
        )

    def lines(self, task: Task) -> dict[str, Any]:
        """Return an example line of the file."""
        return {"answer": make_answer_line(task.config, prob=None)}


class Predictions(SubmissionKind, name="predictions"):
    """Predictions for one set, which are scored directly. There is no model to call."""

    label = _("a predictions file")
    place = 5
    title = _("A predictions file")
    words = _(
        "Answers that you made yourself, for a set whose inputs can be downloaded. Files for "
        "other sets under the same name are the same model. "
        "Speed, memory and robustness are not measured."
    )
    answers = "file"
    joint = Joint(_("Predictions: an archive with a file for each set"), place=1, file_for="set")
    form = PredictionsForm

    def problem(self, sources: Sources) -> Problem | None:
        """Require the file and its set."""
        if not sources.has_upload:
            return "upload", gettext_noop("Choose the file with the predictions (JSON lines).")
        if not sources.has_set:
            return "evaluation_set", gettext_noop("Choose the set that the predictions are for.")
        return None

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Check every line of the file against its set."""
        version = submission.evaluation_set
        assert version is not None  # `problem` refuses predictions without a set
        uids = [row["uid"] for row in read_input_rows(version)]
        packed_path = folder / "predictions.jsonl.gz"
        with assemble(find_uploaded_file(submission), heartbeat.beat) as path:
            keep = partial(keep_predictions, submission.task.config, uids, path, packed_path)
            try:
                digest = bounded(keep, ANSWERS_BOUNDS, heartbeat.beat)
            except ForeignIds as refusal:
                guess = describe_set_of_ids(submission.task, refusal.ids)
                raise SubmissionRefused(f"{refusal} {guess}", refusal.outcome) from None
        return ReceivedModel(digest, packed_path.stat().st_size, packed_path)
