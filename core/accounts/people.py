"""How people are named to others, and what is known of them."""

from allauth.account.models import EmailAddress
from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework.request import Request

from core.accounts.models import Annotator, User
from core.data.prepared import PreparedRead, Slot

CONFIRMED = PreparedRead(lambda: EmailAddress.objects.filter(user=Slot("user"), verified=True)[:1])


def person(request: HttpRequest | Request) -> User:
    """Return the request's user, for views that require a signed-in one."""
    assert isinstance(request.user, User)
    return request.user


def shown_name(annotator: Annotator | None) -> str:
    """Return the name that owners see for an annotator."""
    return _("unknown") if annotator is None else str(annotator)


def account_name(account: User | None, *, owns: bool) -> str:
    """Return the name that members of a task see for an account: its address if `owns`.

    owns: whether the reader owns the task (`tasks.permissions.can_own`). Others see the pseudonym.
    """
    if account is None:
        return _("a deleted account")
    return account_address(account, owns=owns) or public_name(account) or _("a member")


def account_address(account: User | None, *, owns: bool) -> str | None:
    """Return the account's address if the reader owns the task, else None.

    None also for an address that was made up.
    """
    is_shown = owns and account is not None and not account.is_of_panel
    return account.email if account and is_shown else None


def public_name(user: User | None) -> str:
    """Return the pseudonym of a user, or "" without one."""
    return str(getattr(user, "annotator", ""))


def has_confirmed_address(user: User) -> bool:
    """Return whether a person has confirmed an address; True if the site does not ask."""
    if settings.ACCOUNT_EMAIL_VERIFICATION == "none":
        return True
    return CONFIRMED.first(user=user.pk) is not None
