"""Forms of the account pages."""

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from dynabench.accounts.models import ApiToken
from dynabench.accounts.tokens import LONGEST


class TokenForm(forms.Form):
    """What a token is to be."""

    name = forms.CharField(
        max_length=100,
        label=_("Name"),
        help_text=_("What it is for, such as a machine or a script."),
    )
    scopes = forms.MultipleChoiceField(
        choices=ApiToken.Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        label=_("It may"),
        error_messages={"required": _("Choose at least one thing that it may do.")},
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=LONGEST,
        initial=90,
        label=_("Days until it ends"),
        help_text=format_lazy(
            _("1 to {most}. Then programs that use it need another one."), most=LONGEST
        ),
    )
