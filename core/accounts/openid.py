"""An OpenID Connect provider for allauth, with checked claims of which only a few are stored."""

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
    are_groups_elsewhere,
    check_party,
    find_address,
    find_authentication_time,
    find_groups,
    find_subject,
)

logger = logging.getLogger(__name__)


class Provider(OpenIDConnectProvider):  # type: ignore[misc]
    """An allauth provider that accepts claims from userinfo and from the id token."""

    package = OpenIDConnectProvider.get_package()  # where its addresses are

    def sociallogin_from_response(self, request: HttpRequest, response: dict[str, Any]) -> Any:
        """Return the sign-in for the provider's response.

        Raises OAuth2Error for invalid claims, for which allauth shows a page.
        """
        try:
            sources = _get_sources(response)
            find_subject(*sources)
            check_party(sources[1], self.app.client_id)
        except WrongClaims as error:
            logger.warning("A sign-in by OpenID Connect was refused: %s", error)
            raise OAuth2Error(str(error)) from error
        return super().sociallogin_from_response(request, response)

    def extract_uid(self, data: dict[str, Any]) -> str:
        """Return the person's `sub`, or its digest if it is too long for the column."""
        subject = find_subject(*_get_sources(data))
        if len(subject) <= app_settings.UID_MAX_LENGTH:
            return subject
        return f"sha256:{hashlib.sha256(subject.encode()).hexdigest()}"

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the person's address, the only common field, because accounts have no names."""
        return {"email": find_address(*_get_sources(data))[0]}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[EmailAddress]:
        address, is_confirmed = find_address(*_get_sources(data))
        email_address = EmailAddress(email=address, verified=is_confirmed, primary=True)
        return [email_address] if address else []

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the claims to store. Names, pictures and other claims are not stored.

        groups: the person's groups; None if unknown. groups_are_elsewhere: whether the claim only
        links to them. auth_time: when the person last authenticated at the provider, in seconds
        since 1970; None if the provider does not say.
        """
        sources, claim = _get_sources(data), settings.OIDC_GROUPS_CLAIM
        groups = find_groups(sources, claim)
        return {
            "groups": None if groups is None else sorted(groups),
            "groups_are_elsewhere": are_groups_elsewhere(sources, claim),
            "auth_time": find_authentication_time(sources[1]),
        }


def _get_sources(response: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the userinfo and the id token's claims, each {} if missing. Raises WrongClaims."""
    sources = response.get("userinfo", {}), response.get("id_token", {})
    if not all(isinstance(source, dict) for source in sources):
        raise WrongClaims("claims are not an object")
    return sources
