"""Tools of services: store what changed of a row, delete many rows without a long lock."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model, QuerySet

BATCH = 500


def changed_fields(row: Model, values: Mapping[str, Any]) -> list[str]:
    """Store the values that differ from the row's; return their names."""
    changed_names = [name for name, value in values.items() if getattr(row, name) != value]
    for name in changed_names:
        setattr(row, name, values[name])
    # Where nothing changed this writes nothing: Django returns at an empty list.
    row.save(update_fields=changed_names)
    return changed_names


def delete_some(rows: QuerySet[Any], limit: int) -> int:
    """Delete up to `limit` rows in small batches, each in its own transaction; return how many."""
    deleted_count = 0
    while deleted_count < limit:
        # The keys come first, as Django deletes no slice.
        ids = list(
            rows.order_by("pk").values_list("pk", flat=True)[: min(BATCH, limit - deleted_count)]
        )
        if not ids:
            break
        rows.model._default_manager.filter(pk__in=ids).delete()
        deleted_count += len(ids)
    return deleted_count
