"""A site always has an administrator."""

from collections.abc import Collection

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Refused


class LastAdministrator(Refused):
    """Raised if the site would have no administrator."""

    def __init__(self) -> None:
        said = _("This is the only administrator. Name another one first.")
        super().__init__(said, code="last_administrator")


def are_all(people: Collection[int]) -> bool:
    """Return whether no administrator would remain without these people, given by their ids."""
    administrators = set(_administrators().values_list("pk", flat=True))
    return bool(administrators) and administrators <= set(people)


def keep_one(*, leaving_ids: Collection[int]) -> None:
    """Raise LastAdministrator if no administrator would remain without these people.

    Locks all administrators, so that of two who leave at once, one remains. Call it in the
    transaction that removes them.
    """
    # In one order: two who leave at once would otherwise wait for each other.
    locked = _administrators().select_for_update(of=("self",), no_key=True).order_by("pk")
    administrators = set(locked.values_list("pk", flat=True))
    # A site that has none yet loses none.
    if administrators and administrators <= set(leaving_ids):
        raise LastAdministrator


def _administrators() -> QuerySet[User]:
    return User.objects.filter(is_superuser=True, is_active=True)
