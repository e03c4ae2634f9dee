"""Execute SQL statements for writes and counts that every vote needs.

Django takes ten times as long to build such a statement as the database takes to execute it.
"""

from datetime import datetime
from typing import Any

from django.db import connection

Value = int | datetime | None


def fetch_first_row(sql: str, **values: Value) -> tuple[Any, ...] | None:
    """Execute a statement; return its first row, or None if it has no rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, _adapt_values(values))
        return cursor.fetchone()  # type: ignore[no-any-return]


def change_rows(sql: str, **values: Value) -> int:
    """Execute a statement that changes rows; return how many it changed."""
    with connection.cursor() as cursor:
        cursor.execute(sql, _adapt_values(values))
        return int(cursor.rowcount)


def _adapt_values(values: dict[str, Value]) -> dict[str, Any]:
    """Return values in database form. SQLite, for example, stores times as text."""
    adapt = connection.ops.adapt_datetimefield_value
    return {n: adapt(v) if isinstance(v, datetime) else v for n, v in values.items()}
