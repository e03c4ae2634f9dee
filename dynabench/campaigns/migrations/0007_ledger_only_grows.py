"""The database itself refuses to change or delete a row of the ledger.

Nothing in it is personal: a row points at its place, which keeps a pseudonym when somebody leaves.
A later migration that alters the table takes the triggers away before (`drop`), and makes them
again, as SQLite builds an altered table anew.
"""

from typing import Any

from django.db import migrations

ACTIONS = ("UPDATE", "DELETE")
WORDS = "rows of the ledger stay as they are"
POSTGRES = f"""
CREATE OR REPLACE FUNCTION ledger_only_grows() RETURNS trigger AS $$
BEGIN
    RAISE EXCEPTION '{WORDS}' USING ERRCODE = 'integrity_constraint_violation';
END $$ LANGUAGE plpgsql;
CREATE TRIGGER ledger_only_grows BEFORE UPDATE OR DELETE ON campaigns_ledgerrow
    FOR EACH ROW EXECUTE FUNCTION ledger_only_grows()"""


def make(apps: Any, schema_editor: Any) -> None:
    """The triggers."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRES)
        return
    for action in ACTIONS:
        schema_editor.execute(
            f"CREATE TRIGGER ledger_only_grows_{action.lower()} BEFORE {action}"
            f" ON campaigns_ledgerrow BEGIN SELECT RAISE(ABORT, '{WORDS}'); END"
        )


def drop(apps: Any, schema_editor: Any) -> None:
    """No triggers."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP TRIGGER IF EXISTS ledger_only_grows ON campaigns_ledgerrow")
        return
    for action in ACTIONS:
        schema_editor.execute(f"DROP TRIGGER IF EXISTS ledger_only_grows_{action.lower()}")


class Migration(migrations.Migration):
    dependencies = [("campaigns", "0006_places_and_rounds")]

    operations = [migrations.RunPython(make, drop)]
