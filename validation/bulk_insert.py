"""Bulk inserts: COPY on PostgreSQL, executemany elsewhere."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection, models
from django.db.models.fields import NOT_PROVIDED


class Table:
    """A writer for rows with some of a model's columns; the others get their field's default."""

    def __init__(self, model: type[models.Model], columns: Sequence[str]):
        # COPY uses only the database's own defaults, not those of Django.
        default_fields = [
            field
            for field in model._meta.concrete_fields
            if field.column not in columns
            # The database assigns ids and fills in its own defaults.
            and not isinstance(field, models.AutoField)
            and field.db_default is NOT_PROVIDED
        ]
        self._defaults = tuple(
            field.get_db_prep_save(field.get_default(), connection) for field in default_fields
        )
        quote_name = connection.ops.quote_name
        self._table = model._meta.db_table
        names = ", ".join(
            quote_name(name)
            for name in (*columns, *(str(field.column) for field in default_fields))
        )
        self._into = f"{quote_name(self._table)} ({names})"
        self._marks = ", ".join(["%s"] * (len(columns) + len(default_fields)))

    def insert(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Store rows. Values must have the form in which the database stores them."""
        full_rows = (row + self._defaults for row in rows)
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                with cursor.copy(f"COPY {self._into} FROM STDIN") as copy:
                    for row in full_rows:
                        copy.write_row(row)
            else:
                # Only names of tables and columns are interpolated; values are parameters.
                insert = f"INSERT INTO {self._into} VALUES ({self._marks})"  # noqa: S608
                cursor.executemany(insert, list(full_rows))

    def reserve_ids(self, count: int) -> list[int]:
        """Return `count` new ids for rows, which must be stored before more ids are reserved."""
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(
                    "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)",
                    [self._table, count],
                )
                return [row[0] for row in cursor.fetchall()]
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [self._table])
            last_row = cursor.fetchone()
        # Safe on SQLite, where a writing transaction locks the whole database.
        first_id = (last_row[0] if last_row else 0) + 1
        return list(range(first_id, first_id + count))
