"""Ways to sign in: passwords and passkeys, or an organisation's OpenID Connect provider.

A person's first sign-in by the provider makes their account. Roles that OIDC_ROLES names depend
only on the groups that the provider reports at each sign-in.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base.constants import AuthProcess
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from requests import RequestException

from core.accounts.access_services import has_confirmed, set_administrator, take_over
from core.accounts.adapter import Adapter as AccountAdapter
from core.accounts.administrators import LastAdministrator
from core.accounts.models import User
from core.accounts.reauthentication import note_provider
from core.env import ADMINISTRATOR, ROLES
from core.outside import Hanging, Places
from dynabench.notices.inbox import renew_number
from tasks.models import Task
from tasks.services import set_role

logger = logging.getLogger(__name__)
_places = Places()  # of threads that wait for the provider


class Adapter(AccountAdapter):
    """The account adapter for allauth, which can restrict passwords to administrators."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.PASSWORD_SIGN_IN != "administrators")  # noqa: S105

    def pre_login(self, request: HttpRequest, user: User, **named: Any) -> HttpResponse | None:
        """Redirect people who must use the provider back to the page that offers it.

        Applies to every other way of signing in: password, passkey or link.
        """
        by_provider = "sociallogin" in (named.get("signal_kwargs") or {})
        if not (by_provider or user.is_superuser or self.is_open_for_signup(request)):
            message = _("Sign in with %(name)s. Only administrators have a password here.")
            messages.error(request, message % {"name": settings.OIDC_NAME})
            return redirect("account_login")
        response: HttpResponse | None = super().pre_login(request, user, **named)
        return response

    def post_login(self, request: HttpRequest, user: User, **named: Any) -> HttpResponse:
        if login := (named.get("signal_kwargs") or {}).get("sociallogin"):
            follow_groups(user=user, claims=login.account.extra_data)
        response: HttpResponse = super().post_login(request, user, **named)
        if request.user.is_authenticated:
            renew_number(request)
        return response


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """The social account adapter for allauth, which admits everybody whom the provider admits."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True

    def authenticate_by_email(self, sociallogin: Any) -> tuple[User, str] | None:
        """Return the account with the provider's email address.

        If that account never confirmed the address, it passes to the person whom the provider
        vouches for.
        """
        account: tuple[User, str] | None = super().authenticate_by_email(sociallogin)
        if account and not has_confirmed(*account):
            take_over(user=account[0])
        return account

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Record a reauthentication by a person who is already signed in."""
        is_asked_again = sociallogin.state.get("process") == AuthProcess.REDIRECT
        if is_asked_again and not note_provider(request, sociallogin):
            self.on_authentication_error(request)

    def get_requests_session(self) -> Any:
        """Return allauth's session, modified to report a provider that is down.

        It is reported like other sign-in errors.
        """
        session = super().get_requests_session()
        ask = session.request

        def request(method: str, url: str, **named: Any) -> Any:
            try:
                with _places.take():
                    answer = ask(method, url, **named)
                if method == "GET":
                    answer.raise_for_status()
            except (RequestException, Hanging) as error:
                logger.error("The OpenID Connect provider does not answer: %r", error)
                self.on_authentication_error(self.request)
            return answer

        session.request = request
        return session

    def on_authentication_error(self, request: HttpRequest, *args: Any, **named: Any) -> NoReturn:
        """Redirect to the sign-in page, which also offers other ways to sign in."""
        message = _("Signing in with %(name)s did not work. Try again, or ask who runs it.")
        messages.error(request, message % {"name": settings.OIDC_NAME})
        raise ImmediateHttpResponse(redirect("account_login"))


def follow_groups(*, user: User, claims: Mapping[str, Any]) -> None:
    """Give the account the roles of its groups in the provider's claims.

    Changes nothing if the claims do not contain the groups. The last administrator remains one.
    """
    if not settings.OIDC_ROLES:
        return
    if claims.get("groups") is None:
        claim_problem = "did not tell"
        if claims.get("groups_are_elsewhere"):
            claim_problem = "points elsewhere for"
        logger.warning(
            "The provider %s the groups (claim %r) of account %d, whose roles stay as they are.",
            claim_problem,
            settings.OIDC_GROUPS_CLAIM,
            user.pk,
        )
        return
    give_roles(user=user, groups=claims["groups"])


@transaction.atomic
def give_roles(*, user: User, groups: Collection[str]) -> None:
    """Set the account's roles to those that OIDC_ROLES grants its groups.

    Revokes roles that OIDC_ROLES names and the groups no longer grant. Of several roles in
    a task, the strongest counts. Locks each task in which a role changes, then the
    administrators.
    """
    named_roles: set[Any] = set()
    granted_roles: set[Any] = set()
    for group, pairs in settings.OIDC_ROLES.items():
        named_roles |= set(pairs)
        if group in groups:
            granted_roles |= set(pairs)
    codes = {pair[0] for pair in named_roles}
    # In the order of their ids, as everybody who locks several tasks does.
    for task in Task.objects.filter(code__in=codes).order_by("pk"):
        roles = [
            role for role in ROLES if (task.code, role) in granted_roles
        ]  # the strongest first
        set_role(task=task, user=user, role=next(iter(roles), None))
    if ADMINISTRATOR in named_roles and user.is_superuser != (ADMINISTRATOR in granted_roles):
        try:
            set_administrator(user=user, administers=not user.is_superuser, actor=None)
        except LastAdministrator:
            logger.warning("Account %d stays an administrator, as the last one.", user.pk)
