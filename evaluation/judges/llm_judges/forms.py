"""The form to create a judge."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from evaluation.judges.llm_judges.questions import has_criteria
from evaluation.judges.llm_judges.services import MAX_CALLS
from evaluation.runs.chat.forms import make_chat_fields
from tasks.config.schema import TaskConfig
from tasks.models import Task

DEFAULT_PROMPT = (
    "Say whether <answer_to_judge> is a correct answer to what the other texts ask. An answer is "
    "incorrect if any part of it is false, or if it does not answer the question."
)
CRITERIA_PROMPT = (
    "Say whether <answer_to_judge> meets <criterion_to_check>. The other texts are what it "
    "answers. Say “met” only if the whole criterion is met, and look at nothing else."
)


def make_default_prompt(config: TaskConfig) -> str:
    """Return the default prompt of a new judge, with the question that validators are asked.

    The question is left out if it is about attempts to fool a model, because a judge judges
    answers.
    """
    if has_criteria(config):
        return CRITERIA_PROMPT
    validation = config.validation
    # The task's question is about something else, or there is none.
    if validation.asks == "attempt" or not (validation.question and validation.answers):
        return DEFAULT_PROMPT
    return (
        f"Answer this about <answer_to_judge>: {validation.question} Say “correct” for "
        f"“{validation.answers.correct}”, and “incorrect” for “{validation.answers.incorrect}”."
    )


class JudgeForm(forms.Form):
    """A form for a new judge: its name, chat model and prompt."""

    def __init__(self, task: Task, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        self.fields["name"] = forms.SlugField(
            max_length=60,
            label=_("Name"),
            help_text=_(
                "Letters, numbers, hyphens. You can't edit a judge later, so number its versions."
            ),
        )
        hint = _(
            "We add each text after your prompt, between tags named after its field, for example "
            "`<answer_to_judge>`."
        )
        self.fields |= make_chat_fields(
            task,
            label=_("Chat model"),
            prompt=make_default_prompt(task.config),
            prompt_help=hint,
            rows=6,
        )
        self.fields["most_calls"] = forms.IntegerField(
            min_value=1, max_value=MAX_CALLS, initial=500, label=_("Maximum calls per request")
        )
