"""A folder of weights, uploaded as an archive."""

from pathlib import Path

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from evaluation.isolation.queue.leases import Heartbeat
from evaluation.kinds import Joint
from evaluation.models import Submission
from evaluation.submissions.forms import SubmitForm
from evaluation.submissions.kinds.base import SubmissionKind
from evaluation.submissions.receiving import ReceivedModel, receive_archive
from evaluation.submissions.requirements import Problem, Sources


class DirectoryForm(SubmitForm):
    """A form for the archive of a model folder."""

    file_help = _(".zip, .tar or .tar.gz of the folder. Weights as safetensors only.")


class Directory(SubmissionKind, name="directory"):
    """A classifier in a folder written by `save_pretrained`, which contains no code."""

    label = _("a model directory (Hugging Face layout, safetensors)")
    place = 1
    title = _("A model directory")
    words = _(
        "An archive with config.json, tokenizer and weights as safetensors, as save_pretrained "
        "writes them. It holds no code, so it runs fastest."
    )
    answers = "sandbox"
    may_use_gpu = True
    joint = Joint(_("A model's folder: the same archive for each task"), place=4)
    form = DirectoryForm

    def problem(self, sources: Sources) -> Problem | None:
        """Require the archive."""
        if sources.has_upload:
            return None
        return "upload", gettext_noop(
            "Choose the archive of the model's folder (.zip, .tar or .tar.gz)."
        )

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Unpack the archive and check the folder."""
        return receive_archive(submission, folder, heartbeat)
