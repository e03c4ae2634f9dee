"""How often a race is run: more often finds more, and takes longer. Who waits for a lock."""

import os

from django.db import connection

USUAL = 5
WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def races(many: int) -> range:
    """Five times, or `many` times where RACES=many asks for it."""
    return range(many if os.environ.get("RACES") == "many" else min(many, USUAL))


def wait_for(count: int) -> None:
    """Until so many wait for a lock of PostgreSQL."""
    with connection.cursor() as cursor:
        for _ in range(10_000):
            cursor.execute(
                "SELECT pg_stat_clear_snapshot()"
            )  # else as the transaction first saw it
            cursor.execute(WAITING)
            if cursor.fetchone()[0] >= count:
                return
    raise AssertionError(f"fewer than {count} wait")
