"""The forms of a person's own pages."""

from django import forms
from django.utils.translation import gettext_lazy as _

from core.web.lists import ListFilter
from dynabench.people.work import STATUS_WORDS


class ExampleFilter(ListFilter):
    """A form that filters the person's examples; links set the status, the form the task."""

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
    """A form to confirm that deleted data cannot be restored."""

    sure = forms.BooleanField(
        label=_("I know that my data cannot be brought back"),
        error_messages={"required": _("Tick this box to delete your data.")},
    )
