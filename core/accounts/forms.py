"""Forms of the account pages."""

from typing import Any

from allauth.account import forms as allauth_forms
from allauth.account.models import EmailAddress
from allauth.core import context
from allauth.mfa.base import forms as mfa_forms
from allauth.mfa.totp.forms import ActivateTOTPForm
from django import forms
from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from core.accounts.models import ApiToken, User
from core.accounts.tokens import LONGEST


class _PasswordForm(forms.Form):
    """Has its link for a lost password at its end: Tab goes from the address to the password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("password", "oldpassword"):
            if name in self.fields:
                self.fields[name].help_text = ""


class LoginForm(_PasswordForm, allauth_forms.LoginForm):  # type: ignore[misc]
    """Signs in by address and password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "remember" in self.fields:
            self.fields["remember"].label = _("Keep me signed in")


class ReauthenticateForm(_PasswordForm, allauth_forms.ReauthenticateForm):  # type: ignore[misc]
    """Asks for the password again."""


class ChangePasswordForm(_PasswordForm, allauth_forms.ChangePasswordForm):  # type: ignore[misc]
    """Asks for the old and a new password."""


class _OfDigits(forms.Form):
    """Asks for a code, for which a phone shows its digits."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs["inputmode"] = "numeric"


class _OfDigitsAlone(_OfDigits):
    """Has the focus, as the page asks for nothing else."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs["autofocus"] = True


class CodeForm(_OfDigitsAlone, mfa_forms.AuthenticateForm):  # type: ignore[misc]
    """Asks for the code after the password."""


class CodeAgainForm(_OfDigitsAlone, mfa_forms.ReauthenticateForm):  # type: ignore[misc]
    """Asks for a code before a change of how one signs in."""


class ActivateCodeForm(_OfDigits, ActivateTOTPForm):  # type: ignore[misc]
    """Asks for the first code of an app, below what the app has to read."""


class ResetPasswordForm(allauth_forms.ResetPasswordForm):  # type: ignore[misc]
    """Asks for an address to which a link for a new password goes."""

    def clean_email(self) -> str:
        """Leave out accounts that the address does not give: somebody else may read its mail.

        Only an address that its person has confirmed gives an account, or the only one of an
        account that has none, as on sites that ask nobody to confirm.
        """
        address: str = super().clean_email()
        self.users: list[User] = [
            user for user in self.users if _gives(address, user) and _may_have_password(user)
        ]
        return address


def _may_have_password(user: User) -> bool:
    """Return whether a new password is of use: where others sign in by the provider, to few.

    Whoever is signed in may choose one, to confirm changes of sign-in.
    """
    is_closed = settings.PASSWORD_SIGN_IN == "administrators"  # noqa: S105
    return not is_closed or user.is_superuser or user == context.request.user


def _gives(address: str, user: User) -> bool:
    confirmed = EmailAddress.objects.filter(user=user, verified=True)
    if confirmed.exists():
        return bool(confirmed.filter(email__iexact=address).exists())
    return user.email.lower() == address.lower()


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
