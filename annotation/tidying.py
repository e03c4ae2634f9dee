"""Deletion of old unused assignments of rounds that closed long ago."""

from datetime import timedelta

from django.utils import timezone

from annotation.models import Assignment
from core.data.rows import delete_in_batches
from core.periodic import register_daily_tidying

KEEP_TIME = timedelta(days=90)


@register_daily_tidying(why="Assignments without a text are of no use after the round.")
def tidy_assignments(max_rows: int) -> int:
    """Delete up to `max_rows` unused assignments, with drafts, of rounds closed long ago.

    Assignments with an attempt or a suggestion are kept, because these are published as
    counts.
    """
    closed_round_assignments = Assignment.objects.filter(
        round__closed_at__lt=timezone.now() - KEEP_TIME
    )
    return delete_in_batches(
        closed_round_assignments.filter(attempt=None, suggestions=None), max_rows
    )
