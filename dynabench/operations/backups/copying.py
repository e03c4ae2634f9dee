"""PostgreSQL's rows as bytes and back, by COPY: one snapshot, one transaction, no other program.

Migrations create the tables themselves, the same ones on both sides. The bytes are frames, each
preceded by its length. Of each table, the first frame has its name, columns and highest id as
JSON; then follow COPY's output and an empty frame.
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
"""The table with triggers that refuse targets of rounds that have begun."""
LENGTH_FORMAT = struct.Struct(">I")


def dump_rows(cursor: Any) -> Iterator[bytes]:
    """Yield the rows of all tables in frames, as seen by the cursor's transaction."""
    for model in list_stored_models():
        names = [str(field.column) for field in list_columns(model)]
        header = {
            "table": model._meta.db_table,
            "columns": names,
            "last": _read_last_id(cursor, model),
        }
        yield from _encode_frame(json.dumps(header).encode())
        with cursor.copy(f"COPY {_format_target(model, names)} TO STDOUT") as copy:
            for block in copy:
                yield from _encode_frame(bytes(block))
        yield from _encode_frame(b"")


def load_rows(cursor: Any, file: IO[bytes]) -> None:
    """Load the frames of `dump_rows` into the tables that `open_empty_tables` emptied.

    Raises BackupError.
    """
    models = {model._meta.db_table: model for model in list_stored_models()}
    while (header_frame := _read_frame(file)) is not None:
        header = json.loads(header_frame)
        model = models[header["table"]]
        with cursor.copy(f"COPY {_format_target(model, header['columns'])} FROM STDIN") as copy:
            while block := _read_frame(file):
                copy.write(block)
        set_last_id(cursor, model, header["last"])


@contextmanager
def open_empty_tables() -> Iterator[Any]:
    """Empty all tables in a transaction, and yield its cursor.

    Rows can be inserted in any order. Foreign keys are checked at the end.
    """
    tables = ", ".join(f'"{model._meta.db_table}"' for model in list_stored_models())
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {tables}")  # what migrations make there
        # Its triggers would refuse the targets of rounds that had begun when the backup was made.
        cursor.execute(f"ALTER TABLE {TABLE_WITH_TRIGGERS} DISABLE TRIGGER USER")
        yield cursor
        # Foreign keys are checked now: a table with checks that still wait cannot be altered.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {TABLE_WITH_TRIGGERS} ENABLE TRIGGER USER")


def set_last_id(cursor: Any, model: type[Model], last_id: int) -> None:
    """Set the table's sequence to `last_id`, so that ids of deleted rows are never reused."""
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
    """Return the table with its column names for COPY. Databases may order columns differently."""
    column_list = ", ".join(f'"{name}"' for name in names)
    return f'"{model._meta.db_table}" ({column_list})'


def _encode_frame(data: bytes) -> Iterator[bytes]:
    """Yield the length of the data, then the data."""
    yield LENGTH_FORMAT.pack(len(data))
    yield data


def _read_frame(file: IO[bytes]) -> bytes | None:
    """Return the next frame, or None at the end. Raises BackupError."""
    length_bytes = file.read(LENGTH_FORMAT.size)
    if not length_bytes:
        return None
    (size,) = LENGTH_FORMAT.unpack(length_bytes)
    data = file.read(size)
    if len(data) != size:
        raise BackupError("The database dump is incomplete.")
    return data
