"""A language model that runs here: a folder, or an id on the hub, with a prompt."""

from pathlib import Path

from django import forms
from django.utils.translation import gettext_lazy as _

from evaluation.isolation.queue.leases import Heartbeat
from evaluation.kinds import Joint
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
        ".zip, .tar or .tar.gz of the folder, with the tokenizer. Or name a model on the hub below."
    )
    is_file_needed = False
    base = forms.CharField(
        label=_("Base of an adapter"),
        required=False,
        max_length=200,
        help_text=_(
            "If the folder holds a LoRA adapter: organisation/name@commit, or the id of a language "
            "model of this task. Not the one that comes with this site, which is a GGUF file."
        ),
    )
    source = forms.CharField(
        label=_("Or its id on the hub"),
        max_length=500,
        help_text=_("Such as organisation/name."),
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

    label = _("a language model that writes its answers here")
    place = 4
    title = _("A language model")
    words = _(
        "A folder or hub id with weights as safetensors and a chat template. Our server asks "
        "it with your prompt and reads the answer in what it writes."
    )
    answers = "sandbox"
    has_prompt = True
    joint = Joint(
        _("A language model: a hub id or a folder, asked in each task's own words"),
        place=2,
        needs_file=False,
    )
    form = LlmForm

    def problem(self, sources: Sources) -> Problem | None:
        """Require an id and a commit, unless files were uploaded; a worker checks those."""
        if sources.has_upload:
            return None
        return find_hub_problem(sources.source, sources.revision)

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Unpack or fetch the files and check the folder."""
        if submission.upload:
            return receive_archive(submission, folder, heartbeat)
        return receive_from_hub(submission, folder, heartbeat)
