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
