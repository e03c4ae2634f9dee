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
    """A statement, built once, that inserts an object with all its values.

    Sends no signals. unique_fields, update_fields: names of fields. If a row has the same values in
    `unique_fields`, its `update_fields` are changed instead.
    """

    def __init__(
        self,
        model: type[M],
        *,
        unique_fields: Sequence[str] = (),
        update_fields: Sequence[str] = (),
    ) -> None:
        meta: Any = model._meta
        self._model = model
        self._fields = [field for field in meta.concrete_fields if not isinstance(field, AutoField)]
        self._unique_fields = [meta.get_field(name) for name in unique_fields]
        self._update_fields = [meta.get_field(name) for name in update_fields]
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
        """Return Django's SQL for inserting an object like `row`."""
        query = InsertQuery(
            self._model,
            on_conflict=OnConflict.UPDATE if self._unique_fields else None,
            update_fields=self._update_fields,
            unique_fields=self._unique_fields,
        )
        query.insert_values(self._fields, [row])
        compiler: Any = query.get_compiler(connection=connection)
        # `execute_sql`, which is not called here, would set it. It asks for the new key.
        compiler.returning_fields = [self._model._meta.pk]
        # The values are those of `row`; each call passes its own.
        ((sql, _values),) = compiler.as_sql()
        return str(sql)
