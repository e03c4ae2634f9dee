"""Deletes old unused assignments of rounds that closed long ago."""

from datetime import timedelta

from django.utils import timezone

from annotation.models import Assignment
from core.data.rows import delete_some
from core.periodic import tidied_daily

KEEP_TIME = timedelta(days=90)


@tidied_daily(why="Assignments without a text are of no use after the round.")
def tidy_assignments(most: int) -> int:
    """Delete up to `most` unused assignments, with drafts, of rounds closed long ago.

    Assignments with an attempt or a suggestion are kept, because these are published as
    counts.
    """
    over = Assignment.objects.filter(round__closed_at__lt=timezone.now() - KEEP_TIME)
    return delete_some(over.filter(attempt=None, suggestions=None), most)
