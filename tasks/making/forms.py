"""Forms for new tasks, requests for approval, and decisions."""

from django import forms
from django.utils.translation import gettext_lazy as _

from tasks.models import Task

CODE_FIELD, NAME_FIELD = Task._meta.get_field("code"), Task._meta.get_field("name")


class NewTaskForm(forms.Form):
    """A form with the required settings of a new task. Everything else can be changed later."""

    name = forms.CharField(
        label=_("Name"),
        max_length=NAME_FIELD.max_length,
        help_text=_("Shown in the list of tasks. You can change it later."),
    )
    code = forms.CharField(
        # Translators: noun: the short name of a task in addresses
        label=_("Code"),
        max_length=CODE_FIELD.max_length,
        validators=CODE_FIELD.validators,
        help_text=_("Lowercase letters, numbers, hyphens: my-task. You can't change it later."),
        widget=forms.TextInput(attrs={"autocapitalize": "none", "spellcheck": "false"}),
    )


class ApprovalForm(forms.Form):
    """A form for asking administrators to let a task open to non-members."""

    goal = forms.CharField(
        label=_("Goal"),
        max_length=2000,
        help_text=_("What do you want to find out, and what will the data be used for?"),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    people = forms.CharField(
        label=_("People"),
        max_length=2000,
        help_text=_("Who will write and judge, and roughly how many people?"),
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    show = forms.BooleanField(
        label=_("Show the task to everyone once it's approved"),
        required=False,
        initial=True,
        help_text=_("Otherwise only members and people you recruit can see the task."),
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
        help_text=_("The proposer sees this. Required if you decline."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )


class LegacyDecisionForm(DecisionForm):
    """A form for deciding on a proposal from an earlier release. Approval creates the task."""

    code = forms.CharField(
        label=_("Code"), max_length=CODE_FIELD.max_length, validators=CODE_FIELD.validators
    )
