"""Inserts whose SQL is built once, for the rows that every vote writes (core/data/prepared.py)."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import AutoField, Model
from django.db.models.constants import OnConflict
from django.db.models.sql import InsertQuery

M = TypeVar("M", bound=Model)


class PreparedInsert(Generic[M]):
    """A statement that inserts one object with all its values, built once.

    Sends no signals. unique, update: names of fields; a row with the same values of the unique
    fields is updated in the other fields instead.
    """

    def __init__(
        self, model: type[M], *, unique: Sequence[str] = (), update: Sequence[str] = ()
    ) -> None:
        meta: Any = model._meta
        self._model = model
        self._fields = [one for one in meta.concrete_fields if not isinstance(one, AutoField)]
        self._unique = [meta.get_field(name) for name in unique]
        self._update = [meta.get_field(name) for name in update]
        self._sql = ""

    def insert(self, row: M) -> None:
        """Insert an object, and set the key that the database assigned. One query."""
        connection = connections[DEFAULT_DB_ALIAS]
        # No lock: threads that build it at once build the same text.
        if not self._sql:
            self._sql = self._build_sql(row, connection)
        values = [
            field.get_db_prep_save(field.pre_save(row, add=True), connection)
            for field in self._fields
        ]
        with connection.cursor() as cursor:
            cursor.execute(self._sql, values)
            (row.pk,) = cursor.fetchone()
        # As after Django's own insert, so that a later save updates the row.
        row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS

    def _build_sql(self, row: M, connection: BaseDatabaseWrapper) -> str:
        """Return Django's SQL for inserting such a row."""
        query = InsertQuery(
            self._model,
            on_conflict=OnConflict.UPDATE if self._unique else None,
            update_fields=self._update,
            unique_fields=self._unique,
        )
        query.insert_values(self._fields, [row])
        compiler: Any = query.get_compiler(connection=connection)
        # `execute_sql`, which is not called here, would set it. It asks for the new key.
        compiler.returning_fields = [self._model._meta.pk]
        ((sql, _values),) = compiler.as_sql()
        return str(sql)
