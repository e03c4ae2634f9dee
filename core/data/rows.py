"""Save only the changed fields of a row, and delete many rows without a long lock."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Model, QuerySet

BATCH_ROWS = 500


def save_changed_fields(row: Model, values: Mapping[str, Any]) -> list[str]:
    """Save the values that differ from the row's; return the names of these fields."""
    changed_names = [name for name, value in values.items() if getattr(row, name) != value]
    for name in changed_names:
        setattr(row, name, values[name])
    # Where nothing changed this writes nothing: Django returns at an empty list.
    row.save(update_fields=changed_names)
    return changed_names


def delete_in_batches(rows: QuerySet[Any], limit: int) -> int:
    """Delete up to `limit` rows in small batches, each in its own transaction; return how many."""
    deleted_count = 0
    while deleted_count < limit:
        # The keys come first, as Django deletes no slice.
        row_ids = list(
            rows.order_by("pk").values_list("pk", flat=True)[
                : min(BATCH_ROWS, limit - deleted_count)
            ]
        )
        if not row_ids:
            break
        rows.model._default_manager.filter(pk__in=row_ids).delete()
        deleted_count += len(row_ids)
    return deleted_count
