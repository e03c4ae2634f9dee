"""The form of a new task."""

from django import forms
from django.utils.translation import gettext_lazy as _

from tasks.models import Task

CODE, NAME = Task._meta.get_field("code"), Task._meta.get_field("name")


class NewTaskForm(forms.Form):
    """What the maker of a task must say; everything else may change later."""

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
    """What administrators want to know before a task opens to others than its members."""

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
    """What an administrator decides about a proposal."""

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
    """The decision about a proposal of a former release, which makes its task."""

    code = forms.CharField(label=_("Code"), max_length=CODE.max_length, validators=CODE.validators)
