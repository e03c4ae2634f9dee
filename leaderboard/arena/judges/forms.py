"""The form to create a judge of an arena."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext as _

from evaluation.runs.chat.forms import make_chat_fields
from leaderboard.arena.judges.services import MAX_CALLS
from tasks.models import Task

DEFAULT_PROMPT = (
    "Two assistants talked to the same person. Say whose answers in <first_conversation> and "
    "<second_conversation> help the person more. Correctness counts most, then whether the "
    "question is answered. Neither the order nor the length of the answers matters. If neither is "
    "better, answer tie."
)


class ArenaJudgeForm(forms.Form):
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
            "We add both conversations after your prompt. The judge must answer first, second or "
            "tie."
        )
        self.fields |= make_chat_fields(
            task, label=_("Chat model"), prompt=DEFAULT_PROMPT, prompt_help=hint, rows=6
        )
        self.fields["most_calls"] = forms.IntegerField(
            min_value=2,
            max_value=MAX_CALLS,
            initial=500,
            label=_("Maximum calls per request"),
            help_text=_("Each battle needs two calls."),
        )
