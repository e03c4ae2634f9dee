"""The forms of a person's own pages."""

from django import forms
from django.utils.translation import gettext_lazy as _

from core.web.lists import ListFilter
from dynabench.people.work import STATUS_WORDS


class ExampleFilter(ListFilter):
    """A form that filters the person's examples by task and status.

    Links set the status; the form shows only the task.
    """

    task = forms.ChoiceField(required=False, label=_("Task"))
    status = forms.ChoiceField(
        required=False,
        label=_("Status"),
        choices=[("", _("All")), *STATUS_WORDS.items()],
        widget=forms.HiddenInput,
    )


class GoalForm(forms.Form):
    """A form for the weekly goal."""

    amount = forms.IntegerField(
        min_value=0,
        max_value=500,
        label=_("Weekly examples and judgements"),
        help_text=_("Enter 0 to pause. You keep your progress."),
        error_messages={
            "required": _("Enter a number, or 0 to pause."),
            "invalid": _("Enter a whole number, for example 10."),
            "min_value": _("Enter 0 or more."),
            "max_value": _("Enter 500 or less."),
        },
    )


class LeaveForm(forms.Form):
    """A form that confirms that the person knows that deleted data cannot be restored."""

    sure = forms.BooleanField(
        label=_("I understand that my data can't be restored"),
        error_messages={"required": _("Tick this box to delete your data.")},
    )
