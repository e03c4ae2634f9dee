"""A language model that runs here: a folder, or an id on the hub, with a prompt."""

from pathlib import Path

from django import forms
from django.utils.translation import gettext_lazy as _

from evaluation.isolation.queue.leases import Heartbeat
from evaluation.kinds import JointSettings
from evaluation.models import Submission
from evaluation.submissions.forms import make_revision_field
from evaluation.submissions.kinds.base import SubmissionKind
from evaluation.submissions.prompt_form import PromptForm
from evaluation.submissions.receiving import ReceivedModel, receive_archive, receive_from_hub
from evaluation.submissions.requirements import Problem, Sources, find_hub_problem


class LlmForm(PromptForm):
    """A form for the files, prompt and examples of a language model that runs on this site."""

    has_card = True
    file_help = _(
        "The folder as .zip, .tar or .tar.gz, with the tokenizer. Or choose a hub model below."
    )
    is_file_needed = False
    base = forms.CharField(
        label=_("Adapter's base model"),
        required=False,
        max_length=200,
        help_text=_(
            "Only for a LoRA adapter: organisation/name@commit, or the ID of a language model of "
            "this task. The model that comes with this site is a GGUF file and doesn't work."
        ),
    )
    source = forms.CharField(
        label=_("Or its hub ID"),
        max_length=500,
        help_text=_("For example organisation/name"),
        required=False,
    )
    revision = make_revision_field(required=False)
    field_order = (
        "name",
        "base",
        "prompt",
        "instructions",
        "template",
        "shots",
        "shots_seed",
        "max_tokens",
        "stop",
        "perturbed",
        "team",
        "upload",
    )


class Llm(SubmissionKind, name="llm"):
    """Weights of a language model. Our server prompts it and parses its text as an answer."""

    label = _("a language model that runs on this site")
    place = 4
    title = _("Language model")
    words = _("Our server runs it with your prompt.")
    details = _(
        "A folder or hub ID with safetensors weights and a chat template. We extract the answers."
    )
    group = "hub"
    answers = "sandbox"
    has_prompt = True
    joint = JointSettings(
        _("A language model: a hub ID or a folder, with each task's own prompt"),
        place=2,
        needs_file=False,
    )
    form = LlmForm

    def find_problem(self, sources: Sources) -> Problem | None:
        """Return the problem with the id or the commit; None if both are valid.

        If files were uploaded, return None, because a worker checks them.
        """
        if sources.has_upload:
            return None
        return find_hub_problem(sources.source, sources.revision)

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Unpack or fetch the files and check the folder."""
        if submission.upload:
            return receive_archive(submission, folder, heartbeat)
        return receive_from_hub(submission, folder, heartbeat)
