"""The form for a note about an incident."""

from django import forms
from django.utils.translation import gettext_lazy as _

from core.jobs.models import Incident

TITLE, TEXT = Incident._meta.get_field("title"), Incident._meta.get_field("text")


class IncidentForm(forms.Form):
    """A form for a public note about an incident on the site."""

    title = forms.CharField(
        label=_("What is wrong"),
        max_length=TITLE.max_length,
        help_text=_('In one line, for example "The NLI model is down."'),
    )
    text = forms.CharField(
        label=_("Details"),
        required=False,
        max_length=TEXT.max_length,
        help_text=_("What people can do in the meantime, and how long the problem will last."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    is_over = forms.BooleanField(label=_("Resolved"), required=False)
