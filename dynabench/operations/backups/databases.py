"""Snapshots of the database and their restoration: SQLite by its own backup, PostgreSQL by COPY."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.apps import apps
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.models import FileField
from django.utils import timezone

from core.files.storage.disk import open_scratch_folder
from dynabench.operations.backups.copying import dump_rows, load_rows, open_empty_tables
from dynabench.operations.backups.quiet import build_statements
from dynabench.operations.backups.stores import BLOCK_BYTES

PEOPLE_AND_TASKS = ("accounts_user", "tasks_task")


@dataclass
class Snapshot:
    """A consistent snapshot of the database.

    files: the names of all stored files that rows refer to. dump: the database as blocks of bytes.
    """

    files: list[str]
    dump: Iterator[bytes]


def is_empty_database() -> bool:
    """Return whether the database has neither people nor tasks. Its tables may exist."""
    tables = connection.introspection.table_names()
    with connection.cursor() as cursor:
        for table in PEOPLE_AND_TASKS:
            if table in tables:
                # Without models: the tables may be of a version with other columns.
                cursor.execute(f'SELECT 1 FROM "{table}" LIMIT 1')  # noqa: S608
                if cursor.fetchone():
                    return False
    return True


def list_last_migrations() -> dict[str, list[str]]:
    """Return the names of this version's last migrations, by app."""
    names: dict[str, list[str]] = {}
    for app, name in sorted(MigrationLoader(None).graph.leaf_nodes()):
        names.setdefault(app, []).append(name)
    return names


def find_referenced_files() -> list[str]:
    """Return the names of the files that the database's rows refer to now."""
    with connection.cursor() as cursor:

        def fetch(query: str) -> Iterable[tuple[str]]:
            cursor.execute(query)
            yield from cursor.fetchall()

        return _find_file_names(fetch)


def _find_file_names(fetch: Callable[[str], Iterable[tuple[str]]]) -> list[str]:
    names: set[str] = set()
    for model in apps.get_models():
        for field in model._meta.fields:
            if not isinstance(field, FileField):
                continue
            column = field.column
            query = f'SELECT "{column}" FROM "{model._meta.db_table}" WHERE "{column}" <> \'\''  # noqa: S608
            names.update(name for (name,) in fetch(query))
    return sorted(names)


@contextmanager
def take_snapshot() -> Iterator[Snapshot]:
    """Yield a snapshot of the database without blocking writers."""
    take_vendor_snapshot = _take_postgres_snapshot
    if connection.vendor == "sqlite":
        take_vendor_snapshot = _take_sqlite_snapshot
    with take_vendor_snapshot() as snapshot:
        yield snapshot


@contextmanager
def _take_sqlite_snapshot() -> Iterator[Snapshot]:
    # SQLite's own backup copies pages of one moment, while others write.
    connection.ensure_connection()
    with open_scratch_folder() as folder:
        path = folder / "database"
        with closing(sqlite3.connect(path)) as copy:
            connection.connection.backup(copy)
            files = _find_file_names(lambda query: copy.execute(query).fetchall())
        with path.open("rb") as file:
            yield Snapshot(files, _read_blocks(file))


@contextmanager
def _take_postgres_snapshot() -> Iterator[Snapshot]:
    with transaction.atomic(), connection.cursor() as cursor:
        # All tables as of one moment; nobody who writes waits for it.
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield Snapshot(find_referenced_files(), dump_rows(cursor))


def load_dump(path: Path) -> None:
    """Replace the site's database with the dump at `path`, atomically.

    Runs the statements of `quiet.build_statements` in the restored database.
    """
    if connection.vendor == "sqlite":
        _load_sqlite(path)
    else:
        _load_postgres(path)


def _load_sqlite(path: Path) -> None:
    database = Path(str(connection.settings_dict["NAME"]))
    restored_path = database.with_name(f"{database.name}.restored")
    shutil.copyfile(path, restored_path)
    with closing(sqlite3.connect(restored_path)) as copy:
        # One file without a journal beside it, which `replace` would leave behind.
        copy.execute("PRAGMA journal_mode=DELETE")
        copy.executescript(f"BEGIN; {build_statements(timezone.now())} COMMIT;")
    os.sync()  # before the name: a crash leaves the empty database or the whole one
    connection.close()
    # Journals of the empty database would be played into the restored one.
    for suffix in ("-wal", "-shm"):
        database.with_name(f"{database.name}{suffix}").unlink(missing_ok=True)
    restored_path.replace(database)


def _load_postgres(path: Path) -> None:
    # The backup was made by this version, so its tables are the same.
    call_command("migrate", verbosity=0)
    with open_empty_tables() as cursor, path.open("rb") as file:
        load_rows(cursor, file)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        # In the same transaction: nothing is ever seen that would be sent again.
        cursor.execute(build_statements(timezone.now()))


def _read_blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(BLOCK_BYTES):
        yield block
