"""Ask people to authenticate again: by password or passkey, at their provider, or by mail."""

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

LOCAL_METHODS = ("password", "mfa")
"""Sign-in methods in which people enter a password, a passkey or a code on this site."""
SKEW_SECONDS = 60
"""How many seconds the provider's clock may be behind."""


def has_authenticated_recently(request: HttpRequest) -> bool:
    """Return whether the session's person authenticated within the last five minutes.

    Signing in with a password, passkey or code counts. A sign-in through a provider counts only if
    the provider had to authenticate the person again. Unlike with allauth, accounts without a
    password or passkey are not exempt.
    """
    if not request.user.is_authenticated:
        return False
    records = login.get_authentication_records(request, request.user)
    sign_in_times = [
        record["at"]
        for record in records
        # A sign-in by the provider may have asked for nothing, where it still knew the person.
        if record.get("reauthenticated") or record["method"] in LOCAL_METHODS
    ]
    return (
        bool(sign_in_times)
        and time.time() - sign_in_times[-1] < app_settings.REAUTHENTICATION_TIMEOUT
    )


def list_other_methods(user: User) -> list[dict[str, Any]]:
    """Return the reauthentication methods for accounts without a password or passkey.

    This is the provider with which the person signs in, or otherwise a link for setting a password.
    """
    if settings.OIDC_ISSUER and SocialAccount.objects.filter(user=user).exists():
        description = _("Sign in with %(name)s again") % {"name": settings.OIDC_NAME}
        return [{"id": "provider", "description": description, "url": reverse("reauthenticate")}]
    description = _("Email me a link to set a password")
    return [{"id": "mail", "description": description, "url": reverse("account_reset_password")}]


def redirect_to_provider(request: HttpRequest, next_url: str) -> Any:
    """Return a redirect to the provider, which must authenticate the person again."""
    provider = get_adapter().get_provider(request, "oidc")
    parameters = {**provider.get_auth_params(), "prompt": "login", "max_age": "0"}
    return provider.redirect(request, process="redirect", next_url=next_url, auth_params=parameters)


def record_provider_authentication(request: HttpRequest, sociallogin: Any) -> bool:
    """Record that the session's person authenticated at the provider; return whether they did.

    Returns False for another person's account at the provider. Also returns False if the provider
    reports no recent time of authentication (`auth_time`). Providers must report that time if the
    request has `max_age` (OpenID Connect Core 3.1.2.1). Somebody who controls the browser may have
    removed that parameter from the URL.
    """
    authenticated_at = sociallogin.account.extra_data.get("auth_time")
    oldest_time = time.time() - app_settings.REAUTHENTICATION_TIMEOUT - SKEW_SECONDS
    is_recent = authenticated_at is not None and authenticated_at >= oldest_time
    is_same_person = sociallogin.account.pk and sociallogin.user == request.user
    if not (is_same_person and is_recent):
        return False
    login.record_authentication(request, request.user, method="socialaccount", reauthenticated=True)
    return True
