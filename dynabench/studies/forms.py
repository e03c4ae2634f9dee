"""The form of a study's plan."""

from django import forms
from django.utils.translation import gettext_lazy as _

MAX_PLAN_CHARS = 50_000


class StudyForm(forms.Form):
    """The plan of a study, in YAML."""

    plan_text = forms.CharField(
        label=_("Plan"),
        max_length=MAX_PLAN_CHARS,
        help_text=_("YAML with arms, outcomes, hypotheses and size"),
        widget=forms.Textarea(attrs={"rows": 24, "class": "code", "spellcheck": "false"}),
    )
