"""Names in use: what a service asks before it gives one, so that none looks like another."""

from collections.abc import Iterable

from django.db import connection
from django.utils.translation import gettext as _

from core.errors import Invalid
from core.text.names import UnfitName, clean_name, skeleton


def checked_name(text: str, field: str = "name") -> str:
    """Return a name in its stored form. Raises Invalid, at the field, for a forbidden one."""
    try:
        return clean_name(text)
    except UnfitName as error:
        raise Invalid(_(error.words) % error.values, field=field) from None


def lock_names(scope: str) -> None:
    """Lock the names in a scope until the transaction ends.

    On SQLite, writing transactions are serialised anyway.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"names of {scope}"]
            )


def check_free(name: str, taken_names: Iterable[str], field: str = "name") -> None:
    """Raise Invalid if one of the taken names looks like this one. Call `lock_names` first.

    taken_names: must be read from the database after the lock.
    """
    new_skeleton = skeleton(name)
    if any(skeleton(name_in_use) == new_skeleton for name_in_use in taken_names):
        message = _("Another one here has this name, or one that looks the same. Choose another.")
        raise Invalid(message, field=field)
