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
    """A form with its lost-password link at the end, so that Tab moves from address to password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("password", "oldpassword"):
            if name in self.fields:
                self.fields[name].help_text = ""


class LoginForm(_PasswordForm, allauth_forms.LoginForm):  # type: ignore[misc]
    """A form for signing in with address and password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "remember" in self.fields:
            self.fields["remember"].label = _("Keep me signed in")


class ReauthenticateForm(_PasswordForm, allauth_forms.ReauthenticateForm):  # type: ignore[misc]
    """A form that asks for the password again."""


class ChangePasswordForm(_PasswordForm, allauth_forms.ChangePasswordForm):  # type: ignore[misc]
    """A form for replacing the password, which asks for the old one."""


class _OfDigits(forms.Form):
    """A form for a code, for which a phone shows a numeric keypad."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs["inputmode"] = "numeric"


class _OfDigitsAlone(_OfDigits):
    """A form for a code that has the focus, because the page asks for nothing else."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs["autofocus"] = True


class CodeForm(_OfDigitsAlone, mfa_forms.AuthenticateForm):  # type: ignore[misc]
    """A form for the code after the password."""


class CodeAgainForm(_OfDigitsAlone, mfa_forms.ReauthenticateForm):  # type: ignore[misc]
    """A form for a code before a change of how the person signs in."""


class ActivateCodeForm(_OfDigits, ActivateTOTPForm):  # type: ignore[misc]
    """A form for the first code of an app, below the QR code that the app scans."""


class ResetPasswordForm(allauth_forms.ResetPasswordForm):  # type: ignore[misc]
    """A form for an address to which a link for a new password is mailed."""

    def clean_email(self) -> str:
        """Return the address, and drop accounts for which it may be another person's.

        An account is kept if its owner confirmed the address, or if it is the only address of an
        account without a confirmed one, as on sites that do not ask for confirmation.
        """
        address: str = super().clean_email()
        self.users: list[User] = [
            user for user in self.users if _gives(address, user) and _may_have_password(user)
        ]
        return address


def _may_have_password(user: User) -> bool:
    """Return whether the person may use a password: only some may if others use the provider.

    Signed-in people may choose one, to confirm changes of sign-in.
    """
    is_closed = settings.PASSWORD_SIGN_IN == "administrators"  # noqa: S105
    return not is_closed or user.is_superuser or user == context.request.user


def _gives(address: str, user: User) -> bool:
    confirmed = EmailAddress.objects.filter(user=user, verified=True)
    if confirmed.exists():
        return bool(confirmed.filter(email__iexact=address).exists())
    return user.email.lower() == address.lower()


class TokenForm(forms.Form):
    """A form for the settings of a token."""

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
