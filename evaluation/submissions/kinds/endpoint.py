"""A server of the submitter that answers examples."""

from pathlib import Path

from django import forms
from django.utils.translation import gettext_lazy as _

from evaluation.isolation.queue.leases import Heartbeat
from evaluation.models import Submission
from evaluation.submissions.forms import SubmitForm
from evaluation.submissions.kinds.base import SubmissionKind
from evaluation.submissions.receiving import ReceivedModel
from evaluation.submissions.requirements import (
    Problem,
    Sources,
    find_adapter_problem,
    find_address_problem,
)
from evaluation.task_shape import make_runnable

Adapter = Submission.Adapter


class EndpointForm(SubmitForm):
    """A form for an endpoint: its address, protocol and token."""

    source = forms.CharField(
        label=_("URL"), max_length=500, help_text=_("For example https://example.org/model")
    )
    adapter = forms.ChoiceField(
        label=_("Protocol"),
        choices=[
            (Adapter.JSONL, _("Our format: POST to /predict")),
            (Adapter.DYNALAB, "dynalab"),
        ],
        widget=forms.RadioSelect,
        initial=Adapter.JSONL,
    )
    secret = forms.CharField(
        label=_("Bearer token"),
        required=False,
        max_length=1000,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text=_("Sent with each call. Stored encrypted. You won't see it again."),
    )


class RemoteEndpoint(SubmissionKind, name="endpoint"):
    """A model that stays on its owner's server."""

    label = _("a remote endpoint")
    place = 7
    title = _("Remote endpoint")
    words = _("We call your own server.")
    details = _("Works only on sets whose inputs can leave this site.")
    group = "served"
    answers = "elsewhere"
    form = EndpointForm

    def find_problem(self, sources: Sources) -> Problem | None:
        """Return the problem with the address or the protocol; None if the site may call it."""
        problem = find_address_problem(sources.source, sources.private_hosts)
        return problem or find_adapter_problem(sources.adapter)

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Return the model as it will be called. There are no files to fetch."""
        return ReceivedModel("", model=make_runnable(submission.task.config))
