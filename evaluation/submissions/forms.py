"""The forms with which a model is submitted and described."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import QuerySet
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext_lazy as _

from evaluation.kinds import Kind, Words
from evaluation.models import Team
from evaluation.submissions.cards import ModelCard
from tasks.config.schema import TaskConfig
from tasks.models import Task


def make_answer_line(config: TaskConfig, **extra_fields: Any) -> str:
    """Return an example line of a predictions file."""
    answer = {"id": "…", "output": {config.answer_field: "…"}, **extra_fields}
    return json.dumps(answer, ensure_ascii=False)


def make_revision_field(*, required: bool) -> forms.CharField:
    """Return the field for a commit on the hub. Its page offers to read the hub's model card."""
    return forms.CharField(
        label=_("Commit"),
        max_length=100,
        help_text=_("The full 40-character commit hash."),
        required=required,
    )


class CardForm(forms.Form):
    """A form for a model card."""

    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=20_000,
        widget=forms.Textarea({"rows": 10}),
        help_text=_("Markdown: the model's purpose, training data and known weaknesses."),
    )
    languages = forms.CharField(
        label=_("Languages"), required=False, max_length=200, help_text=_("For example: en, de")
    )
    trained_on = forms.CharField(
        label=_("Trained on"),
        required=False,
        max_length=200,
        help_text=_(
            "For example: seed, round 1. Each test set then shows how many of its "
            "examples the model was trained on."
        ),
    )
    trained_until = forms.DateField(
        label=_("Trained until"),
        required=False,
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
        help_text=_(
            "Last day covered by the training data. We compare accuracy on examples written "
            "before and after it."
        ),
    )
    license = forms.CharField(label=_("Licence"), required=False, max_length=100)
    paper_url = forms.URLField(
        label=_("Paper"), required=False, max_length=200, assume_scheme="https"
    )
    parameters = forms.IntegerField(
        label=_("Parameters"),
        required=False,
        min_value=1,
        max_value=10**15,
        help_text=_("Number of learned parameters."),
    )

    @property
    def card(self) -> ModelCard:
        """Return the card of a valid form."""
        return ModelCard(**self.cleaned_data)


# The parts in which a page shows the fields of all kinds, each with the names of its fields.
FORM_PARTS: tuple[tuple[Words, Words, tuple[str, ...]], ...] = (
    (
        _("Model"),
        _("The name on the leaderboard."),
        ("name", "team"),
    ),
    (
        _("Where it is"),
        "",
        (
            "evaluation_set", "upload", "base", "source", "revision", "adapter", "secret", "model",
            "gpus",
        ),
    ),
    (
        _("Prompt"),
        _("What the model reads before each example."),
        ("prompt", "instructions", "template", "shots", "shots_seed"),
    ),
    (
        _("Answers"),
        _("How the model writes, and what we measure."),
        ("temperature", "seed", "max_tokens", "stop", "logprobs", "perturbed"),
    ),
    (
        _("Cost"),
        _("Your provider bills you, never this site."),
        ("price_in", "price_out", "most_cost", "short_only"),
    ),
    (
        _("Model card"),
        _("You can write it now or later."),
        tuple(CardForm.base_fields),
    ),
)  # fmt: skip


class SubmitForm(forms.Form):
    """A base form for submissions. Each kind has a subclass with its own fields.

    `upload` is a whole file; `upload_id` names a file that was uploaded in pieces beforehand.
    """

    file_help: Words = ""
    """The help text of the file field, with the keys of `make_example_lines` as placeholders.

    If it is empty, the form has no file field.
    """
    is_file_needed = True
    has_card = False
    """Whether the form asks for the model card, which the hub may know."""
    has_estimate = False
    """Whether the form has a button that estimates what the evaluations cost."""
    intro = ""
    """The path of a template to show above the form."""
    field_order: Sequence[str] = ("name", "team", "evaluation_set", "upload")

    name = forms.CharField(
        label=_("Model name"),
        max_length=100,
        help_text=_("Include a version, for example “MiniLM, round 2 data, seed 1”."),
    )

    def __init__(
        self,
        task: Task,
        kind: Kind,
        data: Mapping[str, Any] | None = None,
        files: MultiValueDict[str, Any] | None = None,
        teams: QuerySet[Team] | None = None,
    ) -> None:
        super().__init__(data, files, use_required_attribute=False)
        self.kind = kind
        if teams:
            self.fields["team"] = forms.ModelChoiceField(
                label=_("Team"),
                queryset=teams,
                required=False,
                empty_label=_("None (only me)"),
                help_text=_("Team members see the model before it's published."),
            )
        if self.file_help:
            self._add_file_field(task)
        self.add_fields(task)
        # Only images run anywhere, so only their page says if there are no GPUs.
        if kind.is_image or (kind.may_use_gpu and settings.EVALUATION_GPUS):
            self.fields["gpus"] = forms.BooleanField(
                label=_("Run on a GPU"),
                required=False,
                help_text=_("Number of GPUs on this site: %(n)d") % {"n": settings.EVALUATION_GPUS},
            )
        if self.has_card:
            self.fields.update(CardForm().fields)
        self.order_fields(self.field_order)

    def add_fields(self, task: Task) -> None:
        """Add the fields that depend on the task."""

    def make_example_lines(self, task: Task) -> dict[str, str]:
        """Return the lines that `file_help` shows for copying, which are not translated."""
        return {}

    def _add_file_field(self, task: Task) -> None:
        self.fields["upload"] = forms.FileField(
            label=_("File"),
            required=False,
            help_text=self.file_help % self.make_example_lines(task),
        )
        # Required, but it may have been uploaded in pieces before.
        widget = self.fields["upload"].widget
        widget.is_required_by_task = self.is_file_needed  # type: ignore[attr-defined]
        self.fields["upload_id"] = forms.UUIDField(
            required=False, widget=forms.HiddenInput, label=_("Upload")
        )

    def list_parts(self) -> list[tuple[Words, Words, list[forms.BoundField]]]:
        """Return (title, hint, fields) of each part of the form that has fields.

        Fields of no part come last, without a title.
        """
        # Whatever no part names must not disappear from the page.
        rest = {bound.name: bound for bound in self.visible_fields()}
        parts: list[tuple[Words, Words, list[forms.BoundField]]] = []
        for title, hint, names in FORM_PARTS:
            fields = [rest.pop(name) for name in names if name in rest]
            # Most kinds lack some parts: a file has no prompt and no price.
            if fields:
                parts.append((title, hint, fields))
        if rest:
            parts.append(("", "", list(rest.values())))
        return parts

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `submit_model`, except the file. Call only on a valid form."""
        values: dict[str, Any] = {"kind": self.kind.name, "card": self.card}
        for name, value in self.cleaned_data.items():
            is_file = name in ("upload", "upload_id")
            if not is_file and name not in CardForm.base_fields:
                values[name] = value
        return values

    @property
    def card(self) -> ModelCard:
        """Return the model card; empty if the form does not ask for it."""
        if not self.has_card:
            return ModelCard()
        values: dict[str, Any] = {
            name: self.cleaned_data.get(name) for name in CardForm.base_fields
        }
        return ModelCard(**values)


class EmbargoForm(forms.Form):
    """A form for the day on which the model is published automatically; empty for never."""

    publish_on = forms.DateField(
        label=_("Publish on"),
        required=False,
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
        help_text=_(
            "The model becomes public on this date if it has a score. Up to one year ahead."
        ),
    )


class AnonymousForm(forms.Form):
    """A form for the day until which names are hidden; empty to show them."""

    anonymous_until = forms.DateField(
        label=_("Anonymous until"),
        required=False,
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
        help_text=_(
            "Until this date, others see neither the model's name nor yours. Up to one year ahead."
        ),
    )
