"""Forms of the account pages."""

from django import forms

from dynabench.accounts.models import ApiToken
from dynabench.accounts.tokens import LONGEST


class TokenForm(forms.Form):
    """What a token is to be."""

    name = forms.CharField(
        max_length=100, help_text="What it is for, such as a machine or a script."
    )
    scopes = forms.MultipleChoiceField(
        choices=ApiToken.Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        label="It may",
        error_messages={"required": "Choose at least one thing that it may do."},
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=LONGEST,
        initial=90,
        label="Days until it ends",
        help_text=f"1 to {LONGEST}. Then programs that use it need another one.",
    )
