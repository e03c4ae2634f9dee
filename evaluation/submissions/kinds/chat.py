"""A chat model behind the interface that OpenAI's clients speak."""

from pathlib import Path

from django import forms
from django.conf import settings
from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.isolation.queue.leases import Heartbeat
from evaluation.models import Submission
from evaluation.runs.chat.settings import SERVER_SETTINGS
from evaluation.runs.endpoints import compute_identity
from evaluation.submissions.kinds.base import SubmissionKind
from evaluation.submissions.prompt_form import PromptForm, make_number_field
from evaluation.submissions.receiving import ReceivedModel
from evaluation.submissions.requirements import Problem, Sources, find_address_problem
from evaluation.task_shape import make_runnable


def _describe_currency() -> str:
    return gettext("In %(currency)s. Leave empty if the model is free.") % {
        "currency": settings.CURRENCY
    }


class ChatForm(PromptForm):
    """A form for the address, key, prompt, examples, price and cost cap of a chat model."""

    has_estimate = True
    settings = PromptForm.settings + SERVER_SETTINGS
    field_order = (
        "name",
        "source",
        "secret",
        "model",
        "prompt",
        "instructions",
        "template",
        "shots",
        "shots_seed",
        "temperature",
        "seed",
        "max_tokens",
        "stop",
        "price_in",
        "price_out",
        "most_cost",
        "logprobs",
        "perturbed",
        "short_only",
    )
    source = forms.CharField(
        label=_("Base URL"),
        max_length=500,
        help_text=_("For example https://api.example.org/v1. We add /chat/completions."),
    )
    secret = forms.CharField(
        label=_("API key"),
        required=False,
        max_length=1000,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text=_("Sent with each call. Stored encrypted. You won't see it again."),
    )
    model = forms.CharField(label=_("Model name on the server"), max_length=200)
    temperature = make_number_field(
        "temperature", _("Temperature"), _("Leave empty for 0."),
        kind=forms.FloatField,
    )  # fmt: skip
    seed = make_number_field("seed", _("Model seed"), _("We send a seed only if you enter one."))
    logprobs = forms.BooleanField(
        label=_("Request log-probabilities"),
        required=False,
        help_text=_("Stored with each answer. Some servers don't provide them."),
    )
    price_in = make_number_field(
        "price_in", _("Price per million input tokens"),
        lazy(_describe_currency, str)(), kind=forms.FloatField,
    )  # fmt: skip
    price_out = make_number_field(
        "price_out", _("Price per million output tokens"), "", kind=forms.FloatField
    )
    most_cost = make_number_field(
        "most_cost", _("Cost cap"),
        _("For all evaluations together, including later rounds."),
        kind=forms.FloatField,
    )  # fmt: skip
    short_only = forms.BooleanField(
        label=_("Only short evaluations at first"),
        required=False,
        help_text=_(
            "We don't ask the model about whole test sets. On its page you request estimates from "
            "some of the examples, and whole evaluations later."
        ),
    )


class Chat(SubmissionKind, name="chat"):
    """A chat model of a provider or on the submitter's own server."""

    label = _("a chat model behind an OpenAI-compatible API")
    place = 6
    title = _("Chat model")
    words = _("A server with an OpenAI-compatible API.")
    details = _(
        "For example vLLM, llama.cpp, Ollama or most providers. You enter the URL, key and prompt. "
        "Works only on sets whose inputs can leave this site."
    )
    group = "served"
    answers = "elsewhere"
    has_prompt = True
    form = ChatForm

    def find_problem(self, sources: Sources) -> Problem | None:
        """Return the problem if the site may not call the address; None if it may."""
        return find_address_problem(sources.source, sources.private_hosts)

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Return the model as it will be called. There are no files to fetch."""
        digest = compute_identity(submission, submission.source)
        return ReceivedModel(digest, model=make_runnable(submission.task.config))
