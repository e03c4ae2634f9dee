"""The forms of a person's own pages."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dynabench.people.work import STATUS_WORDS
from tasks.models import Task


class FilterForm(forms.Form):
    """Filters of the person's examples."""

    task = forms.ChoiceField(required=False)
    status = forms.ChoiceField(required=False, choices=[("", _("All")), *STATUS_WORDS.items()])
    before = forms.IntegerField(required=False, min_value=1, max_value=2**62)

    def __init__(self, data: Mapping[str, Any], tasks: Iterable[Task]) -> None:
        super().__init__(data, auto_id="filter-%s")
        choices = [("", gettext("All"))]
        choices += [(task.code, task.name) for task in tasks]
        self.fields["task"].choices = choices  # type: ignore[attr-defined]


class GoalForm(forms.Form):
    """A weekly goal."""

    amount = forms.IntegerField(
        min_value=0,
        max_value=500,
        label=_("Examples and judgements in a week"),
        help_text=_("0 is a pause; nothing is lost by it."),
        error_messages={
            "required": _("Enter a number, or 0 for a pause"),
            "invalid": _("Enter a whole number, such as 10"),
            "min_value": _("Enter 0 or more"),
            "max_value": _("Enter 500 or less"),
        },
    )


class LeaveForm(forms.Form):
    """The confirmation that deleted data cannot be restored."""

    sure = forms.BooleanField(
        label=_("I know that my data cannot be brought back"),
        error_messages={"required": _("Tick this box to delete your data.")},
    )
