"""A model on the Hugging Face Hub, by its id and commit."""

from pathlib import Path

from django import forms
from django.utils.translation import gettext_lazy as _

from evaluation.isolation.queue.leases import Heartbeat
from evaluation.kinds import JointSettings
from evaluation.models import Submission
from evaluation.submissions.forms import SubmitForm, make_revision_field
from evaluation.submissions.kinds.base import SubmissionKind
from evaluation.submissions.receiving import ReceivedModel, receive_from_hub
from evaluation.submissions.requirements import Problem, Sources, find_hub_problem


class HubForm(SubmitForm):
    """A form for a model's id on the hub and its commit. The card can be filled in from the hub."""

    has_card = True
    source = forms.CharField(
        label=_("Hub ID"), max_length=500, help_text=_("For example organisation/name")
    )
    revision = make_revision_field(required=True)


class Hub(SubmissionKind, name="hub"):
    """A public folder of weights on the hub, which is downloaded once."""

    label = _("a hub ID with its revision")
    place = 3
    title = _("Hub model")
    words = _("A model ID and its full commit.")
    details = _("We fetch the files once.")
    group = "hub"
    answers = "sandbox"
    may_use_gpu = True
    joint = JointSettings(
        _("A model on the hub: the same ID and commit for each task"), place=3, needs_file=False
    )
    form = HubForm

    def find_problem(self, sources: Sources) -> Problem | None:
        """Return the problem with the id or the commit; None if both are valid."""
        return find_hub_problem(sources.source, sources.revision)

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Fetch the files and check the folder."""
        return receive_from_hub(submission, folder, heartbeat)
