"""The move of a site's rows from a SQLite file to PostgreSQL: all of them or none."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import JSONField, Model

from core.env import parse_database_url
from dynabench.operations.backups.copying import open_empty_tables, set_last_id
from dynabench.operations.backups.databases import is_empty_database
from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.tables import (
    compute_table_digest,
    list_columns,
    list_stored_models,
    read_table_rows,
)

OLD_ALIAS = "old"  # alias of the SQLite file
SKIPPED_TABLES = {"django_migrations", "tasks_taskgroup", "tasks_taskgroup_tasks"}
"""Tables that are not moved: `migrate` fills one, only 0.2.0 needs the others (tasks/0026)."""


def move_rows(path: Path, write_line: Callable[[str], object]) -> None:
    """Copy all rows of the SQLite file into this site's PostgreSQL database.

    The new database must have neither people nor tasks. The file is locked against writes.
    Everything happens in one transaction, which compares the row counts and digests of all tables
    at its end.
    write_line: called with a line about each table, to print it. Raises BackupError.
    """
    if connection.vendor != "postgresql":
        raise BackupError("DATABASE_URL is not a PostgreSQL database. Set it to the new database.")
    if not path.is_file():
        raise BackupError(f"Database not found: {path}.")
    with _open_old_database(path):
        _check_migrated(OLD_ALIAS)
        call_command("migrate", verbosity=0)
        if not is_empty_database():
            raise BackupError(
                "The new database already contains people or tasks. Create an empty one."
            )
        # One transaction for all tables: a difference in the last one moves nothing.
        with open_empty_tables() as cursor:
            # Ids of deleted rows are in logs and files, so they are not given again.
            last_ids = _read_last_ids(path)
            for model in list_stored_models():
                _copy_table(cursor, model)
                _compare_tables(model, write_line)
                set_last_id(cursor, model, last_ids.get(model._meta.db_table, 0))


@contextmanager
def _open_old_database(path: Path) -> Iterator[None]:
    """Register the file as a second database, and lock out other writers during the block."""
    connections.settings[OLD_ALIAS] = connections.configure_settings({
        "default": parse_database_url(f"sqlite:///{path}")
    })["default"]  # fmt: skip
    try:
        with transaction.atomic(using=OLD_ALIAS):  # BEGIN IMMEDIATE
            yield
    finally:
        connections[OLD_ALIAS].close()
        del connections[OLD_ALIAS], connections.settings[OLD_ALIAS]


def _check_migrated(alias: str) -> None:
    executor = MigrationExecutor(connections[alias])
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        raise BackupError(
            "The old database has an older version. Run manage.py migrate there first."
        )
    expected = {model._meta.db_table for model in list_stored_models()} | SKIPPED_TABLES
    unknown_tables = set(connections[alias].introspection.table_names()) - expected
    if unknown_tables:
        raise BackupError(
            f"The old database has unknown tables: {', '.join(sorted(unknown_tables))}."
        )


def _copy_table(cursor: Any, model: type[Model]) -> None:
    from psycopg.types.json import Jsonb  # not installed on sites that stay on SQLite

    fields = list_columns(model)
    names = ", ".join(f'"{field.column}"' for field in fields)
    json_flags = [isinstance(field, JSONField) for field in fields]
    table = model._meta.db_table
    try:
        with cursor.copy(f'COPY "{table}" ({names}) FROM STDIN') as copy:
            for row in read_table_rows(model, OLD_ALIAS):
                values = []
                for value, is_json in zip(row, json_flags, strict=True):
                    if is_json and value is not None:
                        value = Jsonb(value)
                    values.append(value)
                copy.write_row(values)
    # Such as a text with a null character, which PostgreSQL refuses.
    except Exception as error:
        raise BackupError(f"{table} cannot be copied: {error}") from error


def _compare_tables(model: type[Model], write_line: Callable[[str], object]) -> None:
    old_digest = compute_table_digest(model, OLD_ALIAS)
    new_digest = compute_table_digest(model, "default")
    if old_digest != new_digest:
        change = f"{old_digest} became {new_digest}"
        raise BackupError(f"{model._meta.db_table} differs: {change}. Nothing was moved.")
    write_line(f"{model._meta.db_table}: {new_digest[0]} rows, {new_digest[1][:16]}")


def _read_last_ids(path: Path) -> dict[str, int]:
    """Return the highest id that each table has issued, including ids of deleted rows."""
    with closing(sqlite3.connect(path)) as old_database:
        return dict(old_database.execute("SELECT name, seq FROM sqlite_sequence").fetchall())
