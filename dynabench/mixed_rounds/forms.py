"""The form for the shares of a mixed round."""

from django import forms
from django.utils.translation import gettext_lazy as _

from tasks.arms import MAX_PARTS


class SharesForm(forms.Form):
    """The form for the parts of each arm."""

    people = forms.IntegerField(
        label=_("People"), min_value=0, max_value=MAX_PARTS, help_text=_("They write without help.")
    )
    helped = forms.IntegerField(
        label=_("People with suggestions"),
        min_value=0,
        max_value=MAX_PARTS,
        help_text=_("They can ask the suggestion model."),
    )
    drafts = forms.IntegerField(
        label=_("People who finish drafts"),
        min_value=0,
        max_value=MAX_PARTS,
        help_text=_("The suggestion model begins each text."),
    )
    machines = forms.IntegerField(
        label=_("Machines"),
        min_value=0,
        max_value=MAX_PARTS,
        help_text=_("The task’s adversaries."),
    )
