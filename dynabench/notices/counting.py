"""Counting rows by task or round in one query."""

from typing import Any

from django.db.models import Count, QuerySet


def count_by(rows: QuerySet[Any], path: str) -> dict[int, int]:
    """Return the number of rows per task or round, by its id. path: lookup of that id."""
    # Without the default order, whose columns would be part of each group.
    return dict(rows.order_by().values_list(path).annotate(Count("pk")))
