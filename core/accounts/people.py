"""Names of people as others see them, and access to the request's user."""

from allauth.account.models import EmailAddress
from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework.request import Request

from core.accounts.models import Annotator, User
from core.data.prepared import PreparedRead, Slot

CONFIRMED_ADDRESSES = PreparedRead(
    lambda: EmailAddress.objects.filter(user=Slot("user"), verified=True)[:1]
)


def get_person(request: HttpRequest | Request) -> User:
    """Return the request's user. Only for views that require a signed-in user."""
    assert isinstance(request.user, User)
    return request.user


def get_shown_name(annotator: Annotator | None) -> str:
    """Return the name that owners see for an annotator; for None, the word for unknown."""
    return _("unknown") if annotator is None else str(annotator)


def get_member_label(account: User | None, *, is_owner: bool) -> str:
    """Return the name that members of a task see for an account: its address if `is_owner`.

    is_owner: whether the reader owns the task (`tasks.permissions.can_own`). Others see the
    pseudonym.
    """
    if account is None:
        return _("a deleted account")
    return (
        get_account_address(account, is_owner=is_owner) or get_public_name(account) or _("a member")
    )


def get_account_address(account: User | None, *, is_owner: bool) -> str | None:
    """Return the account's address if the reader owns the task, otherwise None.

    Also None for the made-up address of a panel participant. is_owner: whether the reader owns the
    task.
    """
    is_shown = is_owner and account is not None and not account.is_panel_participant
    return account.email if account and is_shown else None


def get_public_name(user: User | None) -> str:
    """Return a user's pseudonym; "" without a user or an annotator."""
    return str(getattr(user, "annotator", ""))


def has_confirmed_address(user: User) -> bool:
    """Return whether a person has confirmed an address.

    Always True on sites that do not require confirmation.
    """
    if settings.ACCOUNT_EMAIL_VERIFICATION == "none":
        return True
    return CONFIRMED_ADDRESSES.first(user=user.pk) is not None
