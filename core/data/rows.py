"""Tools of services: store what changed of a row, delete many rows without a long lock."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model, QuerySet

BATCH = 500


def changed_fields(row: Model, values: Mapping[str, Any]) -> list[str]:
    """Store the values that differ from the row's; return their names."""
    changed = [name for name, value in values.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, values[name])
    # Where nothing changed this writes nothing: Django returns at an empty list.
    row.save(update_fields=changed)
    return changed


def delete_some(rows: QuerySet[Any], most: int) -> int:
    """Delete up to `most` rows in small batches, each in its own transaction; return how many."""
    deleted = 0
    while deleted < most:
        # The keys come first, as Django deletes no slice.
        ids = list(rows.order_by("pk").values_list("pk", flat=True)[: min(BATCH, most - deleted)])
        if not ids:
            break
        rows.model._default_manager.filter(pk__in=ids).delete()
        deleted += len(ids)
    return deleted
