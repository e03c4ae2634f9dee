"""What is wrong when a command fails because of the site's surroundings, in one line."""

from django.db import DatabaseError, InterfaceError

from core.web.outages import FULL_DISK, outage_of
from dynabench.operations.soundness.health import check_schema


def sentence_of(error: Exception) -> str:
    """Return the line that says all of an error; empty: it is one of ours, with a traceback."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return ""
    first = next(iter(str(error).splitlines()), "")
    if outage_of(error) is FULL_DISK:
        return f"The database's disk is full: {first}."
    try:
        schema = check_schema()
    except (DatabaseError, InterfaceError):
        return f"The database does not answer: {first}"
    if schema.state == "bad":
        return f"The database is not ready ({first}). {schema.message}"
    return ""
