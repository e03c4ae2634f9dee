"""The form of a new task."""

from django import forms
from django.utils.translation import gettext_lazy as _

from tasks.models import Task

CODE, NAME = Task._meta.get_field("code"), Task._meta.get_field("name")


class NewTaskForm(forms.Form):
    """A form with the required settings of a new task. Everything else can be changed later."""

    name = forms.CharField(
        label=_("Name"),
        max_length=NAME.max_length,
        help_text=_("What people read in the list of tasks. You may change it later."),
    )
    code = forms.CharField(
        label=_("Code"),
        max_length=CODE.max_length,
        validators=CODE.validators,
        help_text=_("A part of its address that stays: small letters, digits and hyphens."),
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )


class ApprovalForm(forms.Form):
    """A form for asking administrators to let a task open to non-members."""

    goal = forms.CharField(
        label=_("Goal"),
        max_length=2000,
        help_text=_("What the task finds out, and what its data is for."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    people = forms.CharField(
        label=_("People"),
        max_length=2000,
        help_text=_("Who writes and judges, and about how many they are."),
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    show = forms.BooleanField(
        label=_("Show the task to everybody once it is approved"),
        required=False,
        initial=True,
        help_text=_("Otherwise only its members see it, and you may recruit people."),
    )


class DecisionForm(forms.Form):
    """A form for an administrator's decision on a proposal."""

    approve = forms.TypedChoiceField(
        label=_("Decision"),
        choices=[("yes", _("Approve")), ("no", _("Decline"))],
        coerce=lambda value: value == "yes",
        widget=forms.RadioSelect,
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=2000,
        required=False,
        help_text=_("The proposer reads it. Needed to decline."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )


class MakingDecisionForm(DecisionForm):
    """A form for deciding on a proposal of an earlier release; approval creates the task."""

    code = forms.CharField(label=_("Code"), max_length=CODE.max_length, validators=CODE.validators)
