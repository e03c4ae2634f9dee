"""The forms of one's own pages."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

from dynabench.me.work import STATUS_WORDS
from tasks.models import Task


class FilterForm(forms.Form):
    """Which of one's examples to show."""

    task = forms.ChoiceField(required=False)
    status = forms.ChoiceField(required=False, choices=[("", "All"), *STATUS_WORDS.items()])
    before = forms.IntegerField(required=False, min_value=1, max_value=2**62)

    def __init__(self, data: Mapping[str, Any], tasks: Iterable[Task]) -> None:
        super().__init__(data, auto_id="filter-%s")
        self.fields["task"].choices = [("", "All"), *((t.code, t.name) for t in tasks)]  # type: ignore[attr-defined]


class GoalForm(forms.Form):
    """What one wants to do in a week."""

    amount = forms.IntegerField(
        min_value=0,
        max_value=500,
        label="Examples and judgements in a week",
        help_text="0 is a pause; nothing is lost by it.",
        error_messages={
            "required": "Enter a number, or 0 for a pause",
            "invalid": "Enter a whole number, such as 10",
            "min_value": "Enter 0 or more",
            "max_value": "Enter 500 or less",
        },
    )
