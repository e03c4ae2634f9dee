"""Authentication of API requests by token, and the scopes that a token needs."""

from typing import TYPE_CHECKING, cast

from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from core.accounts.models import ApiToken, User
from core.accounts.tokens import find_token

if TYPE_CHECKING:  # it imports this module by a setting
    from rest_framework.views import APIView

Scope = ApiToken.Scope


class TokenAuthentication(BaseAuthentication):
    """Authentication by `Authorization: Bearer <key>`. Keys elsewhere are ignored."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        words = get_authorization_header(request).split()
        if not words or words[0].lower() != b"bearer":
            return None
        # Latin-1 reads any byte, so what is no key is an unknown token and no error.
        token = find_token(words[1].decode("latin-1")) if len(words) == 2 else None
        if token is None:
            raise exceptions.AuthenticationFailed(
                "This token is unknown or has been revoked. Create one on your account page."
            )
        # Said apart from an unknown token, because its owner can make a new one.
        if token.is_expired:
            raise exceptions.AuthenticationFailed(
                f"The token {token} expired on {token.expires_at:%Y-%m-%d}. Create a new one on "
                "your account page."
            )
        if not token.user.is_active:
            raise exceptions.AuthenticationFailed("This account is suspended.")
        if token.user.is_panel_participant:
            raise exceptions.AuthenticationFailed(
                "Panel participants can only use the site's pages."
            )
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def get_needed_scope(view: object, *, is_read: bool) -> str | None:
    """Return the scope that a token needs for a view; None if tokens cannot use the view."""
    if is_read:
        return getattr(view, "read_scope", Scope.READ)
    return getattr(view, "write_scope", None)


class HasScope(BasePermission):
    """A permission that checks a token's scopes.

    Reading needs the scope `read` or the view's `read_scope`, writing its `write_scope`. A session
    has all scopes. Without an account, only public views can be read.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        is_read = request.method in SAFE_METHODS
        if request.auth is None:
            return request.user.is_authenticated or (is_read and getattr(view, "is_public", False))
        scope = get_needed_scope(view, is_read=is_read)
        if scope is None:
            raise exceptions.PermissionDenied(
                "Tokens cannot do this. Sign in on the site.", "session_only"
            )
        if scope not in cast(ApiToken, request.auth).scopes:
            raise exceptions.PermissionDenied(
                f"This token lacks the scope {scope}. Create one with it on your account page.",
                "scope",
            )
        return True
