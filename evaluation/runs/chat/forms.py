"""The form fields of jobs that ask a chat model of a task."""

from django import forms
from django.utils.translation import gettext as _

from evaluation.runs.chat.target_services import find_chat_targets
from tasks.models import Task


def make_chat_fields(
    task: Task, *, label: str, prompt: str, prompt_help: str, rows: int
) -> dict[str, forms.Field]:
    """Return the form fields for the model and its prompt.

    prompt_help: a text that says what follows the prompt in each call.
    """
    return {
        "target": forms.ModelChoiceField(
            find_chat_targets(task),
            label=label,
            empty_label=_("Choose a model"),
            to_field_name="name",
            help_text=_("One of the task's chat models (adapter openai_chat)."),
        ),
        "prompt": forms.CharField(
            max_length=10_000,
            initial=prompt,
            label=_("Prompt"),
            help_text=prompt_help,
            widget=forms.Textarea(attrs={"rows": rows}),
        ),
    }
