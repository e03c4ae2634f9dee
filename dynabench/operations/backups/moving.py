"""A site's rows from a SQLite file to PostgreSQL, all of them or none."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import JSONField, Model

from core.env import database
from dynabench.operations.backups.copying import empty_tables, set_last
from dynabench.operations.backups.databases import is_empty_database
from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.tables import columns, stored_models, table_digest, table_rows

OLD = "old"  # alias of the SQLite file
LEFT = {"django_migrations", "tasks_taskgroup", "tasks_taskgroup_tasks"}
"""Not moved: what `migrate` keeps, and tables that only 0.2.0 still needs (tasks/0026)."""


def move(path: Path, tell: Callable[[str], object]) -> None:
    """Copy all rows of the SQLite file into this site's PostgreSQL database.

    The database must have neither people nor tasks. The file is locked against writes. One
    transaction, which compares counts and digests of all tables before it commits.
    tell: called with a line about each table. Raises BackupError.
    """
    if connection.vendor != "postgresql":
        raise BackupError("DATABASE_URL names no PostgreSQL: set it to the new database.")
    if not path.is_file():
        raise BackupError(f"There is no database at {path}.")
    with _old(path):
        _check_migrated(OLD)
        call_command("migrate", verbosity=0)
        if not is_empty_database():
            raise BackupError("The new database has people or tasks. Make an empty one.")
        # One transaction for all tables: a difference in the last one moves nothing.
        with empty_tables() as cursor:
            # Ids of deleted rows are in logs and files, so they are not given again.
            last = _last_ids(path)
            for model in stored_models():
                _copy(cursor, model)
                _compare(model, tell)
                set_last(cursor, model, last.get(model._meta.db_table, 0))


@contextmanager
def _old(path: Path) -> Iterator[None]:
    """Register the file as a second database, in a transaction that locks out other writers."""
    connections.settings[OLD] = connections.configure_settings({
        "default": database(f"sqlite:///{path}")
    })["default"]  # fmt: skip
    try:
        with transaction.atomic(using=OLD):  # BEGIN IMMEDIATE
            yield
    finally:
        connections[OLD].close()
        del connections[OLD], connections.settings[OLD]


def _check_migrated(alias: str) -> None:
    executor = MigrationExecutor(connections[alias])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise BackupError("The old database is of an older version: run manage.py migrate there.")
    expected = {model._meta.db_table for model in stored_models()} | LEFT
    others = set(connections[alias].introspection.table_names()) - expected
    if others:
        raise BackupError(f"The old database has tables of others: {', '.join(sorted(others))}.")


def _copy(cursor: Any, model: type[Model]) -> None:
    from psycopg.types.json import Jsonb  # not installed on sites that stay on SQLite

    fields = columns(model)
    names = ", ".join(f'"{field.column}"' for field in fields)
    are_json = [isinstance(field, JSONField) for field in fields]
    table = model._meta.db_table
    try:
        with cursor.copy(f'COPY "{table}" ({names}) FROM STDIN') as copy:
            for row in table_rows(model, OLD):
                values = []
                for value, is_json in zip(row, are_json, strict=True):
                    if is_json and value is not None:
                        value = Jsonb(value)
                    values.append(value)
                copy.write_row(values)
    # Such as a text with a null character, which PostgreSQL refuses.
    except Exception as error:
        raise BackupError(f"{table} cannot be copied: {error}") from error


def _compare(model: type[Model], tell: Callable[[str], object]) -> None:
    old, new = table_digest(model, OLD), table_digest(model, "default")
    if old != new:
        raise BackupError(f"{model._meta.db_table} differs: {old} became {new}. Nothing is moved.")
    tell(f"{model._meta.db_table}: {new[0]} rows, {new[1][:16]}")


def _last_ids(path: Path) -> dict[str, int]:
    """Return the highest id that each table has issued, including ids of deleted rows."""
    with closing(sqlite3.connect(path)) as old:
        return dict(old.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
