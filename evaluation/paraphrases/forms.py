"""The form that asks a chat model for paraphrases."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from evaluation.chat.target_services import chat_targets
from evaluation.paraphrases.services import MOST
from tasks.models import Task

PROMPT = (
    "Say <text> in other words and in the same language. Its meaning stays the same, and so does "
    "every name, number and address, letter by letter."
)


class ParaphraseForm(forms.Form):
    """A chat model, what it is told, and of how many examples."""

    def __init__(self, task: Task, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        self.fields["target"] = forms.ModelChoiceField(
            chat_targets(task),
            label=_("Model"),
            to_field_name="name",
            help_text=_("A target of this task with the adapter openai_chat."),
        )
        self.fields["prompt"] = forms.CharField(
            max_length=10_000,
            initial=PROMPT,
            label=_("Prompt"),
            help_text=_("The text is given between tags of its name, as data."),
            widget=forms.Textarea(attrs={"rows": 4}),
        )
        self.fields["size"] = forms.IntegerField(
            min_value=1, max_value=MOST, initial=200, label=_("Most examples")
        )
