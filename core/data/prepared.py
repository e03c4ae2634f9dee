"""Queries whose SQL is built once per thread, for reads that every vote or every page needs.

Django takes longer to build a query than the database takes to answer it. Such a read is written as
a queryset with a slot for each value:

    BY_CODE = PreparedRead(lambda: Task.objects.filter(code=Slot("code", CharField())))
    BY_CODE.first(code="nli")
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigIntegerField, Expression, Field, Model, QuerySet
from django.db.models.query import get_related_populators
from django.db.models.sql.compiler import SQLCompiler

M = TypeVar("M", bound=Model)


KEY_FIELD = BigIntegerField()


class Slot(Expression):
    """A placeholder in a prepared read, whose value each call passes by name."""

    def __init__(self, name: str, output_field: "Field[Any, Any]" = KEY_FIELD) -> None:
        super().__init__(output_field=output_field)
        self.name = name

    def as_sql(self, _compiler: SQLCompiler, _connection: Any) -> tuple[str, tuple[Any, ...]]:
        """Return the SQL placeholder, with this slot as its parameter."""
        return "%s", (self,)

    def get_database_value(self, values: dict[str, Any], connection: BaseDatabaseWrapper) -> Any:
        """Return the call's value for this slot in database form. Raises KeyError."""
        return self.output_field.get_db_prep_value(values[self.name], connection)


@dataclass(frozen=True)
class _Statement:
    """SQL that Django built once, with what is needed to build objects from its rows."""

    sql: str
    parameters: Sequence[Any]  # values that are always the same, and slots
    compiler: SQLCompiler
    converters: dict[int, Any]
    columns: slice  # of the model's own fields in a row
    field_names: Sequence[str]  # of the fields in `columns`
    populators: Sequence[Any]  # they build the related objects

    @classmethod
    def from_queryset(
        cls, queryset: QuerySet[Any], connection: BaseDatabaseWrapper
    ) -> "_Statement":
        """Build the statement of a queryset, like `django.db.models.query.ModelIterable`."""
        compiler = queryset.query.get_compiler(connection=connection)
        sql, parameters = compiler.as_sql()
        select: Any = compiler.select
        class_info: Any = compiler.klass_info
        columns = slice(class_info["select_fields"][0], class_info["select_fields"][-1] + 1)
        return cls(
            sql=sql,
            parameters=parameters,
            compiler=compiler,
            converters=compiler.get_converters([column for column, *_ in select]),
            columns=columns,
            field_names=[column.target.attname for column, *_ in select[columns]],
            populators=get_related_populators(class_info, select, connection.alias),  # type: ignore[call-arg]
        )


class PreparedRead(Generic[M]):
    """A query for whole objects with related ones, built once and called with different values.

    build: returns the queryset, with a `Slot` for each value. It is called once per thread.
    """

    def __init__(self, build: Callable[[], QuerySet[M]]) -> None:
        self._build = build
        self._local = threading.local()  # a compiler belongs to its thread's connection

    def fetch_rows(self, **values: Any) -> list[M]:
        """Return the objects for these values. One query."""
        connection = connections[DEFAULT_DB_ALIAS]
        statement: _Statement | None = getattr(self._local, "statement", None)
        # The compiler writes SQL for its own connection, and reads rows by its rules.
        if statement is None or statement.compiler.connection is not connection:
            statement = self._local.statement = _Statement.from_queryset(self._build(), connection)
        parameters = [
            parameter.get_database_value(values, connection)
            if isinstance(parameter, Slot)
            else parameter
            for parameter in statement.parameters
        ]
        with connection.cursor() as cursor:
            cursor.execute(statement.sql, parameters)
            records = cursor.fetchall()
        converted_rows = statement.compiler.apply_converters(records, statement.converters)
        return [self._build_object(statement, row) for row in converted_rows]

    def first(self, **values: Any) -> M | None:
        """Return the first object for these values, or None. One query."""
        return next(iter(self.fetch_rows(**values)), None)

    def get(self, **values: Any) -> M:
        """Return the object for these values. Raises the model's DoesNotExist. One query."""
        if (record := self.first(**values)) is None:
            raise self._build().model.DoesNotExist  # type: ignore[attr-defined]
        return record

    @staticmethod
    def _build_object(statement: _Statement, row: Sequence[Any]) -> M:
        class_info: Any = statement.compiler.klass_info
        instance = cast(
            M,
            class_info["model"].from_db(
                DEFAULT_DB_ALIAS, statement.field_names, row[statement.columns]
            ),
        )
        for populator in statement.populators:
            populator.populate(row, instance)
        return instance
