"""One-line messages for commands that failed because of the site's environment."""

from django.db import DatabaseError, InterfaceError

from core.web.outages import FULL_DISK_OUTAGE, find_outage
from dynabench.operations.soundness.health import check_schema


def explain_error(error: Exception) -> str:
    """Return a line that explains the error; "" for a bug, whose traceback is needed."""
    # Everything else is a fault of ours.
    if not isinstance(error, DatabaseError | InterfaceError):
        return ""
    first_line = next(iter(str(error).splitlines()), "")
    if find_outage(error) is FULL_DISK_OUTAGE:
        return f"The database's disk is full: {first_line}."
    try:
        # A table that is missing is a site before `migrate`.
        schema = check_schema()
    except (DatabaseError, InterfaceError):
        return f"The database is not responding: {first_line}"
    if schema.state == "bad":
        return f"The database is not ready ({first_line}). {schema.message}"
    return ""
