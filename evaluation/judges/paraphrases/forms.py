"""The form that asks a chat model for paraphrases."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from evaluation.judges.paraphrases.services import MAX_EXAMPLES
from evaluation.runs.chat.forms import make_chat_fields
from tasks.models import Task

DEFAULT_PROMPT = (
    "Say <text> in other words and in the same language. Its meaning stays the same, and so does "
    "every name, number and address, letter by letter."
)


class ParaphraseForm(forms.Form):
    """A form that requests paraphrases: a chat model, its prompt, and the number of examples."""

    def __init__(self, task: Task, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        hint = _("We add the text after your prompt, between `<text>` and `</text>`.")
        self.fields |= make_chat_fields(
            task, label=_("Model"), prompt=DEFAULT_PROMPT, prompt_help=hint, rows=4
        )
        self.fields["size"] = forms.IntegerField(
            min_value=1, max_value=MAX_EXAMPLES, initial=200, label=_("Maximum examples")
        )
