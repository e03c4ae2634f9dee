"""Check new names, so that none looks like a name in use."""

from collections.abc import Iterable

from django.db import connection
from django.utils.translation import gettext as _

from core.errors import Invalid
from core.text.names import UnfitName, build_skeleton, clean_name


def check_name(text: str, field: str = "name") -> str:
    """Return a name in its stored form. Raises Invalid for `field` if the name is forbidden."""
    try:
        return clean_name(text)
    except UnfitName as error:
        raise Invalid(_(error.template) % error.values, field=field) from None


def lock_names(scope: str) -> None:
    """Lock the names in a scope until the transaction ends.

    On SQLite this does nothing, because writing transactions are serialised anyway.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # Not a lock of rows: a name that two people want at once has no row yet.
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"names of {scope}"]
            )


def check_name_is_free(name: str, taken_names: Iterable[str], field: str = "name") -> None:
    """Raise Invalid if one of the taken names looks like this name. Call `lock_names` first.

    taken_names: must be read from the database after the lock.
    """
    new_skeleton = build_skeleton(name)
    if any(build_skeleton(name_in_use) == new_skeleton for name_in_use in taken_names):
        message = _("This name, or one that looks the same, is already taken. Choose another.")
        raise Invalid(message, field=field)
