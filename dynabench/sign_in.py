"""Sign-in with passwords and passkeys, or with an organisation's OpenID Connect provider.

A person's first sign-in through the provider creates their account. The roles in OIDC_ROLES depend
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

from core.accounts.access_services import (
    change_administrator_rights,
    is_address_confirmed,
    secure_account,
)
from core.accounts.adapter import Adapter as AccountAdapter
from core.accounts.administrators import LastAdministrator
from core.accounts.models import User
from core.accounts.reauthentication import record_provider_authentication
from core.env import ADMINISTRATOR_ENTRY, ROLES
from core.outside import ServiceHanging, ThreadSlots
from dynabench.notices.inbox import recount_items
from dynabench.notices.manage_counts import renew_manage_entry
from tasks.models import Task
from tasks.services import set_role

logger = logging.getLogger(__name__)
_slots = ThreadSlots()  # of threads that wait for the provider


class Adapter(AccountAdapter):
    """The account adapter for allauth, which can restrict passwords to administrators."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.PASSWORD_SIGN_IN != "administrators")  # noqa: S105

    def pre_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse | None:
        """Redirect people who must use the provider back to the page that offers it.

        This concerns every other way of signing in: password, passkey or link. Otherwise returns
        allauth's own result, None if the sign-in may go on.
        """
        uses_provider = "sociallogin" in (kwargs.get("signal_kwargs") or {})
        if not (uses_provider or user.is_superuser or self.is_open_for_signup(request)):
            message = _("Sign in with %(name)s. Only administrators have a password here.")
            messages.error(request, message % {"name": settings.OIDC_NAME})
            return redirect("account_login")
        response: HttpResponse | None = super().pre_login(request, user, **kwargs)
        return response

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        if login := (kwargs.get("signal_kwargs") or {}).get("sociallogin"):
            apply_group_claims(user=user, claims=login.account.extra_data)
        response: HttpResponse = super().post_login(request, user, **kwargs)
        if request.user.is_authenticated:
            recount_items(request)
            renew_manage_entry(request)
        return response


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """The social account adapter for allauth, which admits everybody whom the provider admits."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return True

    def authenticate_by_email(self, sociallogin: Any) -> tuple[User, str] | None:
        """Return (account, address) for the provider's email address, or None if no account has it.

        If that address was never confirmed, the account passes to the person whom the provider
        identified.
        """
        account: tuple[User, str] | None = super().authenticate_by_email(sociallogin)
        if account and not is_address_confirmed(*account):
            secure_account(user=account[0])
        return account

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Record the reauthentication if a person who is already signed in confirms who they are.

        If that fails, redirects to the sign-in page with a message.
        """
        is_reauthentication = sociallogin.state.get("process") == AuthProcess.REDIRECT
        if is_reauthentication and not record_provider_authentication(request, sociallogin):
            self.on_authentication_error(request)

    def get_requests_session(self) -> Any:
        """Return allauth's HTTP session, changed so that it handles a provider that is down.

        Such a failure is reported like other sign-in errors.
        """
        session = super().get_requests_session()
        send_request = session.request

        def request(method: str, url: str, **kwargs: Any) -> Any:
            try:
                with _slots.take_slot():
                    answer = send_request(method, url, **kwargs)
                if method == "GET":
                    answer.raise_for_status()
            except (RequestException, ServiceHanging) as error:
                logger.error("The OpenID Connect provider does not respond: %r", error)
                self.on_authentication_error(self.request)
            return answer

        session.request = request
        return session

    def on_authentication_error(self, request: HttpRequest, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise ImmediateHttpResponse, which redirects to the sign-in page with a message.

        That page offers other ways to sign in, too.
        """
        message = _("Signing in with %(name)s failed. Try again, or contact the site's operator.")
        messages.error(request, message % {"name": settings.OIDC_NAME})
        raise ImmediateHttpResponse(redirect("account_login"))


def apply_group_claims(*, user: User, claims: Mapping[str, Any]) -> None:
    """Give the account the roles of its groups in the provider's claims.

    Nothing changes if the claims do not contain the groups. The last administrator remains one.
    """
    if not settings.OIDC_ROLES:
        return
    if claims.get("groups") is None:
        claim_problem = "did not tell"
        if claims.get("groups_are_elsewhere"):
            claim_problem = "points elsewhere for"
        logger.warning(
            "The provider %s the groups (claim %r) of account %d. Its roles are unchanged.",
            claim_problem,
            settings.OIDC_GROUPS_CLAIM,
            user.pk,
        )
        return
    set_group_roles(user=user, groups=claims["groups"])


@transaction.atomic
def set_group_roles(*, user: User, groups: Collection[str]) -> None:
    """Set the account's roles to those that OIDC_ROLES grants its groups.

    Roles in OIDC_ROLES that the groups no longer grant are revoked. Of several roles in a task, the
    strongest counts. Locks each task in which a role changes, then the administrators.
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
        # The strongest first.
        roles = [role for role in ROLES if (task.code, role) in granted_roles]
        set_role(task=task, user=user, role=next(iter(roles), None))
    if ADMINISTRATOR_ENTRY in named_roles and user.is_superuser != (
        ADMINISTRATOR_ENTRY in granted_roles
    ):
        try:
            change_administrator_rights(
                user=user, is_administrator=not user.is_superuser, actor=None
            )
        except LastAdministrator:
            logger.warning(
                "Account %d remains an administrator, because it is the last one.", user.pk
            )
