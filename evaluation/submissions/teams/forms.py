"""The forms of teams."""

from django import forms
from django.utils.translation import gettext_lazy as _

from core.mail.addresses import AddressField


class TeamForm(forms.Form):
    """A form for a new team."""

    name = forms.CharField(
        label=_("Team name"),
        max_length=60,
        help_text=_("Shown on leaderboards. You can't change it later."),
    )


class InvitationForm(forms.Form):
    """A form that invites an email address to a team."""

    email = AddressField(
        label=_("Email address"),
        help_text=_(
            "The address of the person's account. Tell them that the invitation is under “Teams”."
        ),
    )
