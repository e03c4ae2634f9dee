"""Forms of the account pages."""

from typing import Any

from allauth.account import forms as allauth_forms
from allauth.account.models import EmailAddress
from allauth.core import context
from allauth.mfa.base import forms as mfa_forms
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import AddWebAuthnForm
from django import forms
from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from core.accounts.models import ApiToken, User
from core.accounts.tokens import MAX_TOKEN_DAYS

NEW_PASSWORD_LABELS = {
    "oldpassword": _("Current password"),
    "password1": _("New password"),
    "password2": _("Confirm new password"),
}


class _PlainForm(forms.Form):
    """A form whose fields have labels but no placeholders, in which allauth repeats the labels."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)


class _PasswordForm(_PlainForm):
    """A form without the link for lost passwords, which allauth adds as a help text.

    Templates show the link at the end, so that Tab goes from the address to the password.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("password", "oldpassword"):
            if name in self.fields:
                self.fields[name].help_text = ""


class _NewPasswordForm(_PlainForm):
    """A form for choosing a password, with a single line about all the rules."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password1"].help_text = _(
            "Use at least 8 characters. Avoid common passwords and your name."
        )
        for name, label in NEW_PASSWORD_LABELS.items():
            if name in self.fields:
                self.fields[name].label = label


class SignupForm(_NewPasswordForm, allauth_forms.SignupForm):  # type: ignore[misc]
    """A form for a new account."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password1"].label = _("Password")


class SetPasswordForm(_NewPasswordForm, allauth_forms.SetPasswordForm):  # type: ignore[misc]
    """A form for the first password of an account."""


class ResetPasswordKeyForm(_NewPasswordForm, allauth_forms.ResetPasswordKeyForm):  # type: ignore[misc]
    """A form for a new password, opened by the link in a mail."""


class LoginForm(_PasswordForm, allauth_forms.LoginForm):  # type: ignore[misc]
    """A form for signing in with an address and a password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "remember" in self.fields:
            self.fields["remember"].label = _("Keep me signed in")


class ReauthenticateForm(_PasswordForm, allauth_forms.ReauthenticateForm):  # type: ignore[misc]
    """A form that asks for the password again before a sensitive change."""


class ChangePasswordForm(  # type: ignore[misc]
    _NewPasswordForm, _PasswordForm, allauth_forms.ChangePasswordForm
):
    """A form for replacing the password, which asks for the old one."""


class _DigitsForm(_PlainForm):
    """A form for a numeric code, for which phones show a numeric keypad."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs["inputmode"] = "numeric"


class _FocusedDigitsForm(_DigitsForm):
    """A form for a code. Its field has the focus, because the page has no other field."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs["autofocus"] = True


class CodeForm(_FocusedDigitsForm, mfa_forms.AuthenticateForm):  # type: ignore[misc]
    """A form for the second-factor code that is requested after the password."""


class CodeAgainForm(_FocusedDigitsForm, mfa_forms.ReauthenticateForm):  # type: ignore[misc]
    """A form for a code that is requested before a change to how the person signs in."""


class ActivateCodeForm(_DigitsForm, ActivateTOTPForm):  # type: ignore[misc]
    """A form for the first code of an authenticator app, below the QR code that the app scans."""


class AddKeyForm(AddWebAuthnForm):  # type: ignore[misc]
    """A form for a new passkey or security key."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "passwordless" in self.fields:
            self.fields["passwordless"].label = _("Use this key as a passkey")
            self.fields["passwordless"].help_text = _(
                "A passkey signs you in without a password. It asks for your PIN or fingerprint."
            )


class ResetPasswordForm(_PlainForm, allauth_forms.ResetPasswordForm):  # type: ignore[misc]
    """A form for the address to which a link for setting a new password is mailed."""

    def clean_email(self) -> str:
        """Return the address. Remove from `users` the accounts to which no link may be sent.

        An account stays in `users` if its owner confirmed the address. It also stays if the address
        is its only one and no address is confirmed, as on sites that do not require confirmation.
        In both cases, the account must be allowed to have a password.
        """
        address: str = super().clean_email()
        self.users: list[User] = [
            user
            for user in self.users
            if _is_address_accepted(address, user) and _may_have_password(user)
        ]
        return address


def _may_have_password(user: User) -> bool:
    """Return whether the user may have a password.

    If PASSWORD_SIGN_IN is "administrators", only they may, because everybody else signs in through
    the provider. The person who is signed in may always set one, to confirm changes to their
    sign-in.
    """
    is_provider_required = settings.PASSWORD_SIGN_IN == "administrators"  # noqa: S105
    return not is_provider_required or user.is_superuser or user == context.request.user


def _is_address_accepted(address: str, user: User) -> bool:
    confirmed_addresses = EmailAddress.objects.filter(user=user, verified=True)
    if confirmed_addresses.exists():
        return bool(confirmed_addresses.filter(email__iexact=address).exists())
    return user.email.lower() == address.lower()


class TokenForm(forms.Form):
    """A form for the settings of a token."""

    name = forms.CharField(
        max_length=100,
        label=_("Name"),
        help_text=_("For example, the machine or script that uses the token."),
    )
    scopes = forms.MultipleChoiceField(
        choices=ApiToken.Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        label=_("Permissions"),
        error_messages={"required": _("Choose at least one permission.")},
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=MAX_TOKEN_DAYS,
        initial=90,
        label=_("Expires after (days)"),
        help_text=format_lazy(
            _("From 1 to {most} days. Create a new token before this one expires."),
            most=MAX_TOKEN_DAYS,
        ),
    )
