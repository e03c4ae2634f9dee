"""The rows of every table and their digests, read in the same way from both kinds of database."""

import hashlib
import json
from collections.abc import Iterator
from datetime import date
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import F, Field, Model, TextField
from django.db.models.functions import Cast
from picklefield.fields import PickledObjectField

CHUNK_ROWS = 2000


def list_stored_models() -> list[type[Model]]:
    """Return the model of each table, including the tables of many-to-many relations."""
    # Proxies share a table with their model; unmanaged ones have none of ours.
    models = apps.get_models(include_auto_created=True)
    return [model for model in models if model._meta.managed and not model._meta.proxy]


def list_columns(model: type[Model]) -> "list[Field[Any, Any]]":
    """Return the fields that have a column, in a fixed order."""
    return list(model._meta.concrete_fields)


def read_table_rows(model: type[Model], alias: str) -> Iterator[tuple[Any, ...]]:
    """Yield all rows as tuples of Python values, ordered by primary key. Pickled values stay text.

    alias: the name of the database among the connections.
    """
    expressions: dict[str, Any] = {}
    for number, field in enumerate(list_columns(model)):
        expression: Any = F(field.attname)
        if isinstance(field, PickledObjectField):  # never loaded: a pickle runs code
            expression = Cast(field.attname, TextField())
        expressions[f"column_{number}"] = expression
    # The base manager hides no rows.
    ordered_rows = model._base_manager.using(alias).order_by("pk")
    return ordered_rows.values_list(*expressions.values()).iterator(CHUNK_ROWS)


def compute_table_digest(model: type[Model], alias: str) -> tuple[int, str]:
    """Return the number of rows in a table and their SHA-256."""
    sha256, count = hashlib.sha256(), 0
    for row in read_table_rows(model, alias):
        sha256.update(
            json.dumps([_normalize_value(value) for value in row], sort_keys=True).encode()
        )
        count += 1
    return count, sha256.hexdigest()


def _normalize_value(value: Any) -> Any:
    """Normalise a value, so that equal values of different databases compare equal.

    For example, PostgreSQL's JSON writes 1e2 as 100, SQLite's as 100.0.
    """
    match value:
        case bytes() | memoryview():
            return bytes(value).hex()
        case date() | UUID():  # with a time, too
            return str(value)
        case float() if value.is_integer():
            return int(value)
        case list():
            return [_normalize_value(item) for item in value]
        case dict():
            return {key: _normalize_value(item) for key, item in value.items()}
    return value
