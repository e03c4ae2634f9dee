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
    """Who is signed in; for views that let nobody else in."""
    assert isinstance(request.user, User)
    return request.user


def shown_name(annotator: Annotator | None) -> str:
    """A person as owners read them."""
    return _("unknown") if annotator is None else str(annotator)


def account_name(account: User | None, *, owns: bool) -> str:
    """An account as members of a task read it: by address if they own it, else by pseudonym.

    Whose account it is the one for whom the page is made knows by `tasks.permissions.can_own`.
    """
    if account is None:
        return _("a deleted account")
    return account_address(account, owns=owns) or public_name(account) or _("a member")


def account_address(account: User | None, *, owns: bool) -> str | None:
    """The address of an account, for owners of the task alone; None where it was made up."""
    is_shown = owns and account is not None and not account.is_of_panel
    return account.email if account and is_shown else None


def public_name(user: User | None) -> str:
    """The pseudonym of a person with an account; empty where there is none."""
    return str(getattr(user, "annotator", ""))


def has_confirmed_address(user: User) -> bool:
    """Whether a person has shown that an address is theirs; everybody where none is asked to."""
    if settings.ACCOUNT_EMAIL_VERIFICATION == "none":
        return True
    return CONFIRMED.first(user=user.pk) is not None
