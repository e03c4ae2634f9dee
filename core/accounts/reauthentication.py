"""Asking somebody again who they are: by password or passkey, at their provider, or by mail."""

import time
from typing import Any

from allauth.account import app_settings
from allauth.account.internal.flows import login
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from core.accounts.models import User

GIVEN_HERE = ("password", "mfa")
"""How somebody signs in who gives this site a password, a passkey or a code."""
SKEW_SECONDS = 60
"""By how much the provider's clock may be behind."""


def did_recently(request: HttpRequest) -> bool:
    """Return whether the session's person authenticated within the last five minutes.

    Signing in counts. Unlike in allauth, accounts without password and passkey must do so, too.
    """
    if not request.user.is_authenticated:
        return False
    records = login.get_authentication_records(request, request.user)
    times = [
        record["at"]
        for record in records
        # A sign-in by the provider may have asked for nothing, where it still knew the person.
        if record.get("reauthenticated") or record["method"] in GIVEN_HERE
    ]
    return bool(times) and time.time() - times[-1] < app_settings.REAUTHENTICATION_TIMEOUT


def other_ways(user: User) -> list[dict[str, Any]]:
    """Return the reauthentication methods for accounts without password and passkey.

    The provider with which the person signs in; without one, a password set by mail.
    """
    if settings.OIDC_ISSUER and SocialAccount.objects.filter(user=user).exists():
        described = _("Sign in with %(name)s again") % {"name": settings.OIDC_NAME}
        return [{"id": "provider", "description": described, "url": reverse("reauthenticate")}]
    described = _("Choose a password, by a link that we mail to you")
    return [{"id": "mail", "description": described, "url": reverse("account_reset_password")}]


def ask_provider(request: HttpRequest, next_url: str) -> Any:
    """Return a redirect to the provider, which must authenticate the person again."""
    provider = get_adapter().get_provider(request, "oidc")
    parameters = {**provider.get_auth_params(), "prompt": "login", "max_age": "0"}
    return provider.redirect(request, process="redirect", next_url=next_url, auth_params=parameters)


def note_provider(request: HttpRequest, sociallogin: Any) -> bool:
    """Record that the session's person authenticated at the provider; return whether they did.

    The provider must report when. It must do so for requests with `max_age` (OpenID Connect Core
    3.1.2.1), and whoever controls the browser may have removed that parameter from the URL.
    """
    authenticated_at = sociallogin.account.extra_data.get("auth_time")
    oldest = time.time() - app_settings.REAUTHENTICATION_TIMEOUT - SKEW_SECONDS
    is_recent = authenticated_at is not None and authenticated_at >= oldest
    is_theirs = sociallogin.account.pk and sociallogin.user == request.user
    if not (is_theirs and is_recent):
        return False
    login.record_authentication(request, request.user, method="socialaccount", reauthenticated=True)
    return True
