"""The OpenID Connect provider as allauth sees it, with claims that are checked and few."""

import hashlib
import logging
from typing import Any

from allauth.account.models import EmailAddress
from allauth.socialaccount import app_settings
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.conf import settings
from django.http import HttpRequest

from core.accounts.claims import (
    WrongClaims,
    address_of,
    are_elsewhere,
    authenticated_at,
    check_party,
    groups_of,
    subject_of,
)

logger = logging.getLogger(__name__)


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    """allauth's provider, which accepts claims from userinfo and from the id token."""

    package = OpenIDConnectProvider.get_package()  # where its addresses are

    def sociallogin_from_response(self, request: HttpRequest, response: dict[str, Any]) -> Any:
        """Return the sign-in for the provider's response.

        Raises OAuth2Error for invalid claims, for which allauth shows a page.
        """
        try:
            sources = _sources(response)
            subject_of(*sources)
            check_party(sources[1], self.app.client_id)
        except WrongClaims as error:
            logger.warning("A sign-in by OpenID Connect was refused: %s", error)
            raise OAuth2Error(str(error)) from error
        return super().sociallogin_from_response(request, response)

    def extract_uid(self, data: dict[str, Any]) -> str:
        """Return `sub`, or its digest if it is longer than the column."""
        subject = subject_of(*_sources(data))
        if len(subject) <= app_settings.UID_MAX_LENGTH:
            return subject
        return f"sha256:{hashlib.sha256(subject.encode()).hexdigest()}"

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return only the address, because accounts have no names."""
        return {"email": address_of(*_sources(data))[0]}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[EmailAddress]:
        address, is_confirmed = address_of(*_sources(data))
        found = EmailAddress(email=address, verified=is_confirmed, primary=True)
        return [found] if address else []

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the claims that are needed later. Names, pictures and others are not stored.

        groups: null if they are unknown. auth_time: when the person last authenticated at the
        provider, in seconds since 1970; null if the provider does not say.
        """
        sources, claim = _sources(data), settings.OIDC_GROUPS_CLAIM
        groups = groups_of(sources, claim)
        return {
            "groups": None if groups is None else sorted(groups),
            "groups_are_elsewhere": are_elsewhere(sources, claim),
            "auth_time": authenticated_at(sources[1]),
        }


def _sources(response: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the userinfo and the id token's claims, each {} if missing. Raises WrongClaims."""
    sources = response.get("userinfo", {}), response.get("id_token", {})
    if not all(isinstance(source, dict) for source in sources):
        raise WrongClaims("claims are not an object")
    return sources
