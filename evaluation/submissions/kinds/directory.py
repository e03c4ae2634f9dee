"""A folder of weights, uploaded as an archive."""

from pathlib import Path

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from evaluation.isolation.queue.leases import Heartbeat
from evaluation.kinds import JointSettings
from evaluation.models import Submission
from evaluation.submissions.forms import SubmitForm
from evaluation.submissions.kinds.base import SubmissionKind
from evaluation.submissions.receiving import ReceivedModel, receive_archive
from evaluation.submissions.requirements import Problem, Sources


class DirectoryForm(SubmitForm):
    """A form for the archive of a model folder."""

    file_help = _("The folder as .zip, .tar or .tar.gz, with safetensors weights only.")


class Directory(SubmissionKind, name="directory"):
    """A classifier in a folder written by `save_pretrained`, which contains no code."""

    label = _("a model directory (Hugging Face layout, safetensors)")
    place = 1
    title = _("Model folder")
    words = _("Weights in safetensors, without code.")
    details = _(
        "An archive with config.json, tokenizer and safetensors weights, as save_pretrained writes "
        "them. It runs fastest."
    )
    answers = "sandbox"
    may_use_gpu = True
    joint = JointSettings(_("A model folder: the same archive for each task"), place=4)
    form = DirectoryForm

    def find_problem(self, sources: Sources) -> Problem | None:
        """Return the problem if the archive is missing; None if it is there."""
        if sources.has_upload:
            return None
        return "upload", gettext_noop(
            "Choose the archive of the model folder (.zip, .tar or .tar.gz)."
        )

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Unpack the archive and check the folder."""
        return receive_archive(submission, folder, heartbeat)
