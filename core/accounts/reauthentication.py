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
    """Whether the person of this session gave a password, or the like, in the last five minutes.

    Signing in with it counts. allauth says yes for accounts that have neither.
    """
    if not request.user.is_authenticated:
        return False
    records = login.get_authentication_records(request, request.user)
    given = [
        one["at"] for one in records if one.get("reauthenticated") or one["method"] in GIVEN_HERE
    ]
    return bool(given) and time.time() - given[-1] < app_settings.REAUTHENTICATION_TIMEOUT


def other_ways(user: User) -> list[dict[str, Any]]:
    """How somebody without password and passkey shows who they are.

    At the provider by which they sign in; otherwise they get a password by mail first.
    """
    if settings.OIDC_ISSUER and SocialAccount.objects.filter(user=user).exists():
        described = _("Sign in with %(name)s again") % {"name": settings.OIDC_NAME}
        return [{"id": "provider", "description": described, "url": reverse("reauthenticate")}]
    described = _("Choose a password, by a link that we mail to you")
    return [{"id": "mail", "description": described, "url": reverse("account_reset_password")}]


def ask_provider(request: HttpRequest, next_url: str) -> Any:
    """The way to the provider, which is to ask for a password or the like even of who is known."""
    provider = get_adapter().get_provider(request, "oidc")
    asked = {**provider.get_auth_params(), "prompt": "login", "max_age": "0"}
    return provider.redirect(request, process="redirect", next_url=next_url, auth_params=asked)


def note_provider(request: HttpRequest, sociallogin: Any) -> bool:
    """Whether the person of this session showed the provider who they are; noted in the session.

    The provider must tell when: it owes that to whoever asks with `max_age` (OpenID Connect Core
    3.1.2.1), and whoever has the browser may have taken that out of the address.
    """
    told = sociallogin.account.extra_data.get("auth_time")
    oldest = time.time() - app_settings.REAUTHENTICATION_TIMEOUT - SKEW_SECONDS
    is_recent = told is not None and told >= oldest
    is_theirs = sociallogin.account.pk and sociallogin.user == request.user
    if not (is_theirs and is_recent):
        return False
    login.record_authentication(request, request.user, method="socialaccount", reauthenticated=True)
    return True
