"""A database trigger that prevents changes to the targets of a round once it has opened.

`migrate` drops the trigger and recreates it afterwards, because SQLite cannot rebuild a table that
a trigger names.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections, transaction
from django.db.models import QuerySet

from tasks.models import Round, RoundTarget

ROWS_BY_ACTION = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}
FIXED_CONDITION = """EXISTS (SELECT 1 FROM tasks_round WHERE id = {row}.round_id
    AND (opened_at IS NOT NULL OR state = 'released'))"""
FIXED_MESSAGE = "the targets of a round are fixed once it was opened"
POSTGRES_SQL = f"""
CREATE OR REPLACE FUNCTION roundtarget_fixed() RETURNS trigger AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND {FIXED_CONDITION.format(row="OLD")} THEN
        RAISE EXCEPTION '{FIXED_MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF TG_OP <> 'DELETE' AND {FIXED_CONDITION.format(row="NEW")} THEN
        RAISE EXCEPTION '{FIXED_MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN COALESCE(NEW, OLD);
END $$ LANGUAGE plpgsql;
CREATE TRIGGER roundtarget_fixed BEFORE INSERT OR UPDATE OR DELETE ON tasks_roundtarget
    FOR EACH ROW EXECUTE FUNCTION roundtarget_fixed()"""


def create_triggers(*, using: str, **signal: Any) -> None:
    """Create the triggers after `migrate` and `flush`, if their table exists. A signal receiver."""
    connection = connections[using]
    if RoundTarget._meta.db_table not in connection.introspection.table_names():
        return
    # Also after a `flush`, which leaves the triggers in place.
    drop_triggers(using=using)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(POSTGRES_SQL)
            return
        for action, rows in ROWS_BY_ACTION.items():
            fixed_condition = " OR ".join(FIXED_CONDITION.format(row=row) for row in rows)
            statement = (
                f"CREATE TRIGGER roundtarget_fixed_{action.lower()} BEFORE {action}"
                f" ON tasks_roundtarget WHEN {fixed_condition} BEGIN"
                f" SELECT RAISE(ABORT, '{FIXED_MESSAGE}'); END"
            )
            cursor.execute(statement)


def drop_triggers(*, using: str, **signal: Any) -> None:
    """Drop the triggers before `migrate`. A signal receiver."""
    connection = connections[using]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("DROP TRIGGER IF EXISTS roundtarget_fixed ON tasks_roundtarget")
            return
        for action in ROWS_BY_ACTION:
            statement = f"DROP TRIGGER IF EXISTS roundtarget_fixed_{action.lower()}"
            cursor.execute(statement)


@contextmanager
def lift_triggers(rounds: QuerySet[Round]) -> Iterator[None]:
    """Allow the targets of these rounds to be deleted or replaced within the `with` block.

    The rounds are marked as opened again afterwards. Call it in a transaction.
    """
    with transaction.atomic():
        # The trigger looks at `opened_at`, so for the time of the write the rounds were never
        # opened.
        opening_times = dict(rounds.filter(opened_at__isnull=False).values_list("pk", "opened_at"))
        Round.objects.filter(pk__in=opening_times).update(opened_at=None)
        yield
        for pk, opened_at in opening_times.items():
            Round.objects.filter(pk=pk).update(opened_at=opened_at)
