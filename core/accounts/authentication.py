"""Who a request of the API is from, and what its token may do."""

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
                "This token is unknown or was revoked. Make one on your account page."
            )
        if token.is_over:
            raise exceptions.AuthenticationFailed(
                f"The token {token} ended on {token.expires_at:%Y-%m-%d}. Make another one on your "
                "account page."
            )
        if not token.user.is_active:
            raise exceptions.AuthenticationFailed("This account is switched off.")
        if token.user.is_of_panel:
            raise exceptions.AuthenticationFailed("People of a panel work on the site's pages.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class HasScope(BasePermission):
    """A permission that checks a token's scopes.

    Reading needs the scope `read` or the view's `read_scope`, writing its `write_scope`. A session
    has all scopes. Without an account, only public views can be read.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        is_read = request.method in SAFE_METHODS
        if request.auth is None:
            return request.user.is_authenticated or (is_read and getattr(view, "is_public", False))
        kind, usual = ("read_scope", Scope.READ) if is_read else ("write_scope", None)
        needed_scope = getattr(view, kind, usual)
        if needed_scope is None:
            raise exceptions.PermissionDenied(
                "Tokens cannot do this. Sign in on the site.", "session_only"
            )
        if needed_scope not in cast(ApiToken, request.auth).scopes:
            raise exceptions.PermissionDenied(
                f"This token lacks the scope {needed_scope}. Make one that has it on your account "
                "page.",
                "scope",
            )
        return True
