"""The form of an incident note."""

from django import forms
from django.utils.translation import gettext_lazy as _

from core.jobs.models import Incident

TITLE, TEXT = Incident._meta.get_field("title"), Incident._meta.get_field("text")


class IncidentForm(forms.Form):
    """A form for a public note about an incident on the site."""

    title = forms.CharField(
        label=_("What is wrong"),
        max_length=TITLE.max_length,
        help_text=_("One line, such as: the target of NLI does not answer."),
    )
    text = forms.CharField(
        label=_("More about it"),
        required=False,
        max_length=TEXT.max_length,
        help_text=_("What people can do meanwhile, and until when it lasts."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    is_over = forms.BooleanField(label=_("It is over"), required=False)
