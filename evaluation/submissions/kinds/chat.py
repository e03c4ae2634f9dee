"""A chat model behind the interface that OpenAI's clients speak."""

from pathlib import Path

from django import forms
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
    )
    source = forms.CharField(
        label=_("Base URL"),
        max_length=500,
        help_text=_("Such as https://api.example.org/v1; /chat/completions is added."),
    )
    secret = forms.CharField(
        label=_("API key"),
        required=False,
        max_length=1000,
        widget=forms.PasswordInput({"autocomplete": "off"}),
        help_text=_("Sent with each call. Stored encrypted and never shown again."),
    )
    model = forms.CharField(label=_("Name of the model on the server"), max_length=200)
    temperature = make_number_field(
        "temperature", _("Temperature"), _("0 if empty."),
        kind=forms.FloatField,
    )  # fmt: skip
    seed = make_number_field("seed", _("Seed of the model"), _("Sent if you enter one."))
    logprobs = forms.BooleanField(
        label=_("Ask for log-probabilities"),
        required=False,
        help_text=_("Kept with each answer. Some servers refuse to tell them."),
    )
    price_in = make_number_field(
        "price_in", _("Price of a million tokens read"),
        _("In any currency; empty if it costs nothing."), kind=forms.FloatField,
    )  # fmt: skip
    price_out = make_number_field(
        "price_out", _("Price of a million tokens written"), "", kind=forms.FloatField
    )
    most_cost = make_number_field(
        "most_cost", _("Cap on the cost"),
        _("Of all evaluations together, those of later rounds too."),
        kind=forms.FloatField,
    )  # fmt: skip


class Chat(SubmissionKind, name="chat"):
    """A chat model of a provider or on the submitter's own server."""

    label = _("a chat model behind an OpenAI-compatible interface")
    place = 6
    title = _("A chat model")
    words = _(
        "Behind the interface that OpenAI's clients speak, as vLLM, llama.cpp, Ollama and most "
        "providers have it: address, key, prompt. Only on sets whose inputs may leave this "
        "site."
    )
    answers = "elsewhere"
    has_prompt = True
    form = ChatForm

    def problem(self, sources: Sources) -> Problem | None:
        """Require an address that the site may call."""
        return find_address_problem(sources.source, sources.private_hosts)

    def receive(self, submission: Submission, folder: Path, heartbeat: Heartbeat) -> ReceivedModel:
        """Return the model as it will be called. There are no files to fetch."""
        digest = compute_identity(submission, submission.source)
        return ReceivedModel(digest, model=make_runnable(submission.task.config))
