"""Rows of PostgreSQL as bytes and back, by COPY: one snapshot, one transaction, no other program.

The tables themselves are made by the migrations, which are the same on both sides. The bytes are
frames, each with its length before it: of each table its name, columns and highest id as JSON, then
what COPY says, then an empty frame.
"""

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from django.db import connection, transaction
from django.db.models import AutoField, BigAutoField, Model

from dynabench.operations.backups.errors import BackupError
from dynabench.operations.backups.tables import list_columns, list_stored_models

TABLE_WITH_TRIGGERS = "tasks_roundtarget"
"""The table whose triggers refuse targets of rounds that have begun, which all rows have here."""
LENGTH_FORMAT = struct.Struct(">I")


def dump_rows(cursor: Any) -> Iterator[bytes]:
    """Yield the rows of all tables in frames, as seen by the cursor's transaction."""
    for model in list_stored_models():
        names = [str(field.column) for field in list_columns(model)]
        head = {
            "table": model._meta.db_table,
            "columns": names,
            "last": _read_last_id(cursor, model),
        }
        yield from _encode_frame(json.dumps(head).encode())
        with cursor.copy(f"COPY {_format_target(model, names)} TO STDOUT") as copy:
            for block in copy:
                yield from _encode_frame(bytes(block))
        yield from _encode_frame(b"")


def load_rows(cursor: Any, file: IO[bytes]) -> None:
    """Load the frames of `dump_rows` into empty tables (`empty_tables`). Raises BackupError."""
    models = {model._meta.db_table: model for model in list_stored_models()}
    while (head := _read_frame(file)) is not None:
        about = json.loads(head)
        model = models[about["table"]]
        with cursor.copy(f"COPY {_format_target(model, about['columns'])} FROM STDIN") as copy:
            while block := _read_frame(file):
                copy.write(block)
        set_last_id(cursor, model, about["last"])


@contextmanager
def empty_tables() -> Iterator[Any]:
    """Yield a cursor in a transaction in which all tables are empty.

    Rows can be inserted in any order. Foreign keys are checked at the end.
    """
    tables = ", ".join(f'"{model._meta.db_table}"' for model in list_stored_models())
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {tables}")  # what migrations make there
        cursor.execute(f"ALTER TABLE {TABLE_WITH_TRIGGERS} DISABLE TRIGGER USER")
        yield cursor
        # Foreign keys are checked now: a table with checks that still wait cannot be altered.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {TABLE_WITH_TRIGGERS} ENABLE TRIGGER USER")


def set_last_id(cursor: Any, model: type[Model], last_id: int) -> None:
    """Set the table's sequence to `last`, so that ids of deleted rows are never reused."""
    if last_id:
        table, column = _name_primary_key(model)
        query = "SELECT setval(pg_get_serial_sequence(%s, %s), %s)"
        cursor.execute(query, [table, column, last_id])


def _read_last_id(cursor: Any, model: type[Model]) -> int:
    """Return the highest id that the table's sequence has issued; 0 without one."""
    if not isinstance(model._meta.pk, AutoField | BigAutoField):
        return 0
    cursor.execute(
        "SELECT pg_sequence_last_value(pg_get_serial_sequence(%s, %s))", _name_primary_key(model)
    )
    return int(cursor.fetchone()[0] or 0)


def _name_primary_key(model: type[Model]) -> list[str]:
    return [f'"{model._meta.db_table}"', str(model._meta.pk.column)]


def _format_target(model: type[Model], names: list[str]) -> str:
    """Return the table with its column names, because sites may order columns differently."""
    quoted = ", ".join(f'"{name}"' for name in names)
    return f'"{model._meta.db_table}" ({quoted})'


def _encode_frame(data: bytes) -> Iterator[bytes]:
    """Yield the length of the data, then the data."""
    yield LENGTH_FORMAT.pack(len(data))
    yield data


def _read_frame(file: IO[bytes]) -> bytes | None:
    """Return the next frame, or None at the end. Raises BackupError."""
    head = file.read(LENGTH_FORMAT.size)
    if not head:
        return None
    (size,) = LENGTH_FORMAT.unpack(head)
    data = file.read(size)
    if len(data) != size:
        raise BackupError("The dump of the database ends too early.")
    return data
