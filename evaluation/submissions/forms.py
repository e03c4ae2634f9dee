"""The forms with which a model is submitted and described."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import QuerySet
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext_lazy as _

from evaluation.models import Submission, Team
from evaluation.submissions.requirements import ON_GPU
from evaluation.submissions.services import ModelCard
from evaluation.test_sets.selectors import open_versions
from tasks.config.schema import TaskConfig
from tasks.models import Task

Kind = Submission.Kind
Adapter = Submission.Adapter
# What is said of each kind before it is chosen.
KINDS = {
    Kind.DIRECTORY: (
        _("A model directory"),
        _(
            "An archive with config.json, tokenizer and weights as safetensors, as save_pretrained "
            "writes them. It holds no code, so it runs fastest."
        ),
    ),
    Kind.IMAGE: (
        _("A Docker image"),
        _(
            "Any code: it reads JSON lines and writes JSON lines, without a network. "
            "Also images of dynalab and Dynabench 2.0."
        ),
    ),
    Kind.HUB: (
        _("A model on the hub"),
        _("Its id and a full commit; the files are fetched once."),
    ),
    Kind.LLM: (
        _("A language model"),
        _(
            "A folder or hub id with weights as safetensors and a chat template. Our server asks "
            "it with your prompt and reads the answer in what it writes."
        ),
    ),
    Kind.PREDICTIONS: (
        _("A predictions file"),
        _(
            "Answers that you made yourself, for a set whose inputs can be downloaded. Files for "
            "other sets under the same name are the same model. "
            "Speed, memory and robustness are not measured."
        ),
    ),
    Kind.ROWS: (
        _("Training data"),
        _(
            "Rows, or uids of released ones. The same model learns from each submission here, so "
            "that the data alone decides."
        ),
    ),
    Kind.CHAT: (
        _("A chat model"),
        _(
            "Behind the interface that OpenAI's clients speak, as vLLM, llama.cpp, Ollama and most "
            "providers have it: address, key, prompt. Only on sets whose inputs may leave this "
            "site."
        ),
    ),
    Kind.ENDPOINT: (
        _("A remote endpoint"),
        _("We ask your server. Only on sets whose inputs may leave this site."),
    ),
}


def answer_line(config: TaskConfig, **more: Any) -> str:
    """Return a line of a predictions file as it is written."""
    answer = {"id": "…", "output": {config.answer_field: "…"}, **more}
    return json.dumps(answer, ensure_ascii=False)


class SubmitForm(forms.Form):
    """The form of one kind of submission.

    `upload` is a whole file; `upload_id` names one that has come in pieces before the form.
    """

    name = forms.CharField(
        label=_("Name of the model"),
        max_length=100,
        help_text=_("With its version, such as “MiniLM, round 2 data, seed 1”."),
    )

    def __init__(
        self,
        task: Task,
        kind: Submission.Kind,
        data: Mapping[str, Any] | None = None,
        files: MultiValueDict[str, Any] | None = None,
        teams: QuerySet[Team] | None = None,
    ) -> None:
        super().__init__(data, files, use_required_attribute=False)
        self.kind, self.title = kind, KINDS[kind][0]
        if teams:
            self.fields["team"] = forms.ModelChoiceField(
                label=_("For a team"),
                queryset=teams,
                required=False,
                empty_label=_("none: for myself"),
                help_text=_("Its members see the model before it is published."),
            )
        if kind == Kind.PREDICTIONS:
            self._add_sets(task)
        if kind in FILES:
            self.fields["upload"] = forms.FileField(
                label=_("File"), required=False, help_text=FILES[kind] % self._lines(task)
            )
            # Needed, but it may have come in pieces before.
            is_needed = kind not in (Kind.IMAGE, Kind.LLM)
            self.fields["upload"].widget.is_required_by_task = is_needed  # type: ignore[attr-defined]
            self.fields["upload_id"] = forms.UUIDField(
                required=False, widget=forms.HiddenInput, label=_("Upload")
            )
        if kind in SOURCES:
            self._add_source(kind)
        if kind in HAS_CARD:
            self.fields.update(CardForm().fields)

    def _lines(self, task: Task) -> dict[str, str]:
        """Return what is shown to be copied, apart from the words, which are translated."""
        return {"answer": answer_line(task.config, prob=None), "row": '{"uid": "…"}'}

    def _add_sets(self, task: Task) -> None:
        self.fields["evaluation_set"] = forms.ModelChoiceField(
            label=_("For which set"),
            queryset=open_versions(task),
            help_text=_(
                "Sets whose inputs can be downloaded. Each line of your file has the id of one."
            ),
        )

    def _add_source(self, kind: Submission.Kind) -> None:
        label, help_text = SOURCES[kind]
        self.fields["source"] = forms.CharField(
            label=label, max_length=500, help_text=help_text, required=kind not in FILES
        )
        if kind in (Kind.HUB, Kind.LLM):
            self.fields["revision"] = forms.CharField(
                label=_("Commit"),
                max_length=100,
                help_text=_("All 40 hexadecimal digits."),
                required=kind == Kind.HUB,
            )
        else:
            choices: Any = ENDPOINT_ADAPTERS
            if kind == Kind.IMAGE:
                choices = Adapter.choices
            self.fields["adapter"] = forms.ChoiceField(
                label=_("How it is asked"),
                choices=choices,
                widget=forms.RadioSelect,
                initial=Adapter.JSONL,
            )
        if kind == Kind.IMAGE or (kind in ON_GPU and settings.EVALUATION_GPUS):
            self.fields["gpus"] = forms.BooleanField(
                label=_("Run on a GPU"),
                required=False,
                help_text=_("This site has %(n)d of them.") % {"n": settings.EVALUATION_GPUS},
            )
        if kind == Kind.ENDPOINT:
            self.fields["secret"] = forms.CharField(
                label=_("Bearer token"),
                required=False,
                max_length=1000,
                widget=forms.PasswordInput({"autocomplete": "off"}),
                help_text=_("Sent with each call. Stored encrypted and never shown again."),
            )

    @property
    def wanted(self) -> dict[str, Any]:
        """Return the arguments of `submit_model`, without the file, of a valid form."""
        arguments: dict[str, Any] = {"kind": self.kind, "card": self.card}
        for name, value in self.cleaned_data.items():
            is_file = name in ("upload", "upload_id")
            if not is_file and name not in CardForm.base_fields:
                arguments[name] = value
        return arguments

    @property
    def card(self) -> ModelCard:
        """Return the model card; empty if the form does not ask for it."""
        if self.kind not in HAS_CARD:
            return ModelCard()
        values: dict[str, Any] = {
            name: self.cleaned_data.get(name) for name in CardForm.base_fields
        }
        return ModelCard(**values)


HAS_CARD = (Kind.HUB, Kind.LLM)  # the hub may know the card of these
FILES = {
    Kind.DIRECTORY: _(".zip, .tar or .tar.gz of the folder. Weights as safetensors only."),
    Kind.IMAGE: _("What docker save writes. Or name the image below."),
    Kind.LLM: _(
        ".zip, .tar or .tar.gz of the folder, with the tokenizer. Or name a model on the hub below."
    ),
    Kind.ROWS: _(
        "JSON lines: the fields that models read and their label, or %(row)s for a row of a "
        "released train split."
    ),
    Kind.PREDICTIONS: _(
        "JSON lines such as %(answer)s. Or what lm-evaluation-harness (--log_samples) or Inspect "
        "(.eval) wrote of the release's own task."
    ),
}
SOURCES = {
    Kind.HUB: (_("Id on the hub"), _("Such as organisation/name.")),
    Kind.LLM: (_("Or its id on the hub"), _("Such as organisation/name.")),
    Kind.IMAGE: (_("Or the image in a registry"), _("With its digest: registry/name@sha256:…")),
    Kind.ENDPOINT: (_("Address"), _("Such as https://example.org/model")),
}
ENDPOINT_ADAPTERS = [
    (Adapter.JSONL, _("Our format: POST to /predict")),
    (Adapter.DYNALAB, "dynalab"),
]


class CardForm(forms.Form):
    """The form of a model card."""

    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=20_000,
        widget=forms.Textarea({"rows": 10}),
        help_text=_("Markdown: what it is for, what it was trained on, where it fails."),
    )
    languages = forms.CharField(
        label=_("Languages"), required=False, max_length=200, help_text=_("Such as en, de.")
    )
    trained_on = forms.CharField(
        label=_("Trained on"),
        required=False,
        max_length=200,
        help_text=_(
            "Such as seed, round 1. Of each set it is shown how many examples are among these."
        ),
    )
    trained_until = forms.DateField(
        label=_("Trained until"),
        required=False,
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
        help_text=_(
            "The last day of its training data: its accuracy before and after is compared."
        ),
    )
    license = forms.CharField(label=_("Licence"), required=False, max_length=100)
    paper_url = forms.URLField(label=_("Paper"), required=False, assume_scheme="https")
    parameters = forms.IntegerField(
        label=_("Parameters"),
        required=False,
        min_value=1,
        max_value=10**15,
        help_text=_("How many numbers it learned."),
    )

    @property
    def card(self) -> ModelCard:
        """Return the card of a valid form."""
        return ModelCard(**self.cleaned_data)


class EmbargoForm(forms.Form):
    """The day on which the model is published automatically; empty: never."""

    publish_on = forms.DateField(
        label=_("Publish on"),
        required=False,
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
        help_text=_(
            "From that day on everybody sees it, once it has a score. At most a year ahead."
        ),
    )


class AnonymousForm(forms.Form):
    """The day until which names are hidden; empty: they are shown."""

    anonymous_until = forms.DateField(
        label=_("Anonymous until"),
        required=False,
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
        help_text=_(
            "Before that day others see neither the model's name nor yours. At most a year."
        ),
    )
