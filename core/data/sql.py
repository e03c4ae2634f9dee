"""Statements in SQL, for writes and counts that every vote needs.

Django takes ten times as long to build such a statement as the database takes to carry it out.
"""

from datetime import datetime
from typing import Any

from django.db import connection

Value = int | datetime | None


def first_row(sql: str, **values: Value) -> tuple[Any, ...] | None:
    """Return the first row of a statement, or None."""
    with connection.cursor() as cursor:
        cursor.execute(sql, _adapted(values))
        return cursor.fetchone()  # type: ignore[no-any-return]


def change_rows(sql: str, **values: Value) -> int:
    """Execute a statement that changes rows; return how many it changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, _adapted(values))
        return int(cursor.rowcount)


def _adapted(values: dict[str, Value]) -> dict[str, Any]:
    """Return values in database form: SQLite stores times as text."""
    adapt = connection.ops.adapt_datetimefield_value
    return {n: adapt(v) if isinstance(v, datetime) else v for n, v in values.items()}
