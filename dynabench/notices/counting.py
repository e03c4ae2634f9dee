"""Counts of rows by task or round, in one query, and the rows that several pages count."""

from typing import Any

from django.db.models import Count, QuerySet

from annotation.models import Report
from validation.models import Comment


def count_rows_by_id(rows: QuerySet[Any], path: str) -> dict[int, int]:
    """Return the number of rows per task or round, by its id. path: the lookup of that id."""
    # Without the default order, whose columns would be part of each group.
    return dict(rows.order_by().values_list(path).annotate(Count("pk")))


def select_open_reports() -> tuple[QuerySet[Report], QuerySet[Comment]]:
    """Return the open reports on texts and the reported comments of all tasks.

    Together they are what pages call reports.
    """
    return (
        Report.objects.filter(resolved_at=None),
        Comment.objects.filter(reported_at__isnull=False),
    )
