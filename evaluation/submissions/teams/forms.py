"""The forms of teams."""

from django import forms
from django.utils.translation import gettext_lazy as _

from core.mail.addresses import AddressField


class TeamForm(forms.Form):
    """A form for a new team."""

    name = forms.CharField(
        label=_("Name of the team"),
        max_length=60,
        help_text=_("Leaderboards show it. It cannot be changed."),
    )


class InvitationForm(forms.Form):
    """A form that invites an email address to a team."""

    email = AddressField(
        label=_("E-mail address"),
        help_text=_("Of the account. Tell them: they find the invitation under “Teams”."),
    )
