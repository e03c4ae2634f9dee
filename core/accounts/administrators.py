"""Keep at least one administrator on a site."""

from collections.abc import Collection

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Refused


class LastAdministrator(Refused):
    """Raised if the site would have no administrator."""

    def __init__(self) -> None:
        message = _("This is the only administrator. Appoint another one first.")
        super().__init__(message, code="last_administrator")


def are_all_administrators(user_ids: Collection[int]) -> bool:
    """Return whether the users with these ids include all administrators.

    False if there are no administrators.
    """
    administrators = set(_select_administrators().values_list("pk", flat=True))
    return bool(administrators) and administrators <= set(user_ids)


def check_administrator_remains(*, leaving_ids: Collection[int]) -> None:
    """Raise LastAdministrator if no administrator would remain without these people.

    Locks all administrators, so that of two who leave at once, one remains. Call it in the
    transaction that removes them.
    """
    # In one order: two who leave at once would otherwise wait for each other.
    locked_administrators = (
        _select_administrators().select_for_update(of=("self",), no_key=True).order_by("pk")
    )
    administrators = set(locked_administrators.values_list("pk", flat=True))
    # A site that has none yet loses none.
    if administrators and administrators <= set(leaving_ids):
        raise LastAdministrator


def _select_administrators() -> QuerySet[User]:
    return User.objects.filter(is_superuser=True, is_active=True)
