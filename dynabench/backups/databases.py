"""The database of one moment, and back: SQLite by its own backup, PostgreSQL by its programs."""

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from django.apps import apps
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.models import FileField

from dynabench.backups.errors import BackupError
from dynabench.backups.quiet import STATEMENTS
from dynabench.backups.stores import BLOCK
from dynabench.lib.disk import scratch

PEOPLE_AND_TASKS = ("accounts_user", "tasks_task")
NOT_OF_LIBPQ = ("cursor_factory", "context", "prepare_threshold", "server_side_binding", "options")
CONTENT = ("--no-owner", "--no-privileges")


@dataclass
class Snapshot:
    """files: the names of all stored files that rows name; dump: the bytes of the database."""

    files: list[str]
    dump: Iterator[bytes]


def is_empty() -> bool:
    """Whether the database holds neither people nor tasks; it may hold empty tables."""
    tables = connection.introspection.table_names()
    with connection.cursor() as cursor:
        for table in PEOPLE_AND_TASKS:
            if table in tables:
                cursor.execute(f'SELECT 1 FROM "{table}" LIMIT 1')  # noqa: S608
                if cursor.fetchone():
                    return False
    return True


def last_migrations() -> dict[str, list[str]]:
    """By application, of this code."""
    found: dict[str, list[str]] = {}
    for app, name in sorted(MigrationLoader(None).graph.leaf_nodes()):
        found.setdefault(app, []).append(name)
    return found


def named_files() -> list[str]:
    """The files that rows name now."""
    with connection.cursor() as cursor:
        return _names(lambda query: (cursor.execute(query), cursor.fetchall())[1])


def _names(fetch: Callable[[str], Iterable[tuple[str]]]) -> list[str]:
    found: set[str] = set()
    for model in apps.get_models():
        for column in (f.column for f in model._meta.fields if isinstance(f, FileField)):
            query = f'SELECT "{column}" FROM "{model._meta.db_table}" WHERE "{column}" <> \'\''  # noqa: S608
            found.update(name for (name,) in fetch(query))
    return sorted(found)


@contextmanager
def snapshot() -> Iterator[Snapshot]:
    """While people write; nobody waits for it. Raises BackupError."""
    with (_sqlite_snapshot if connection.vendor == "sqlite" else _postgres_snapshot)() as found:
        yield found


@contextmanager
def _sqlite_snapshot() -> Iterator[Snapshot]:
    connection.ensure_connection()
    with scratch() as folder:
        path = folder / "database"
        with closing(sqlite3.connect(path)) as copy:
            connection.connection.backup(copy)
            files = _names(lambda query: copy.execute(query).fetchall())
        with path.open("rb") as file:
            yield Snapshot(files, _blocks(file))


@contextmanager
def _postgres_snapshot() -> Iterator[Snapshot]:
    _check_version("pg_dump")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute("SELECT pg_export_snapshot()")
        (name,) = cursor.fetchone()
        command = ["pg_dump", "--format=custom", *CONTENT, f"--snapshot={name}"]
        command.append(f"--dbname={_address()[0]}")
        yield Snapshot(named_files(), _output(command))


def _output(command: list[str]) -> Iterator[bytes]:
    """What a client program prints. Raises BackupError."""
    with _started(command, stdout=subprocess.PIPE) as (process, said):
        assert process.stdout
        yield from _blocks(process.stdout)
        if process.wait():
            raise BackupError(f"{command[0]} failed: {said()}")


@contextmanager
def _started(
    command: list[str], **pipes: Any
) -> Iterator[tuple["subprocess.Popen[bytes]", Callable[[], str]]]:
    """A client program, which ends with the context, and what it says on stderr."""
    with TemporaryFile() as errors:

        def said() -> str:
            errors.seek(0)
            return errors.read().decode(errors="replace").strip()[-1000:]

        environment = os.environ | {"PGPASSWORD": _address()[1]}
        process = subprocess.Popen(command, env=environment, stderr=errors, **pipes)
        with process:
            try:
                yield process, said
            finally:
                process.kill()


def _address() -> tuple[str, str]:
    """Where the database is, for libpq's programs, and its password, which stays out of lists of
    processes."""
    from psycopg.conninfo import make_conninfo  # where SQLite is used it need not be there

    params = connection.get_connection_params()
    password = params.pop("password", "")
    known = {name: value for name, value in params.items() if name not in NOT_OF_LIBPQ}
    return make_conninfo(**known), password


def _check_version(*programs: str) -> None:
    """The client programs are there, and not older than the server. Raises BackupError."""
    connection.ensure_connection()
    server = connection.connection.info.server_version // 10000
    for program in programs:
        if not shutil.which(program):
            raise BackupError(
                f"{program} is missing. Install PostgreSQL's client programs, version {server} or "
                "newer (Debian: postgresql-client)."
            )
        says = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        found = re.search(r"\d+", says.stdout)
        if found and int(found[0]) < server:
            raise BackupError(
                f"{program} is of version {found[0]}, the server of {server}. Install the client "
                f"programs of {server} or newer."
            )


def load(path: Path) -> None:
    """Make the dump at `path` the site's database, quiet, at once or not at all.

    Raises BackupError.
    """
    (_load_sqlite if connection.vendor == "sqlite" else _load_postgres)(path)


def _load_sqlite(path: Path) -> None:
    database = Path(str(connection.settings_dict["NAME"]))
    new = database.with_name(f"{database.name}.restored")
    shutil.copyfile(path, new)
    with closing(sqlite3.connect(new)) as copy:
        copy.execute("PRAGMA journal_mode=DELETE")
        copy.executescript(f"BEGIN; {STATEMENTS} COMMIT;")
    os.sync()
    connection.close()
    for suffix in ("-wal", "-shm"):  # of the empty one
        database.with_name(f"{database.name}{suffix}").unlink(missing_ok=True)
    new.replace(database)


def _load_postgres(path: Path) -> None:
    _check_version("pg_restore", "psql")
    dump = ["pg_restore", "--clean", "--if-exists", "--no-comments", *CONTENT, "--file=-"]
    load = ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-"]
    load.append(f"--dbname={_address()[0]}")
    with _started(load, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as (psql, said):
        assert psql.stdin
        try:
            psql.stdin.write(b"BEGIN;\n")
            for block in _output([*dump, str(path)]):
                psql.stdin.write(block)
            # Its script empties the path; without the last line all is rolled back.
            psql.stdin.write(f"\nRESET search_path;\n{STATEMENTS}COMMIT;\n".encode())
            psql.stdin.close()
        except BrokenPipeError:
            pass  # psql says why
        if psql.wait():
            raise BackupError(f"psql failed: {said()}")


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block
