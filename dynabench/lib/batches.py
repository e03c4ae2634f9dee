"""Deleting many rows without holding the database for long."""

from typing import Any

from django.db.models import QuerySet

BATCH = 500


def delete_some(rows: QuerySet[Any], most: int) -> int:
    """Delete up to `most` rows, few at a time, each batch its own transaction; how many went."""
    deleted = 0
    while deleted < most:
        found = list(rows.order_by("pk").values_list("pk", flat=True)[: min(BATCH, most - deleted)])
        if not found:
            break
        rows.model._default_manager.filter(pk__in=found).delete()
        deleted += len(found)
    return deleted
