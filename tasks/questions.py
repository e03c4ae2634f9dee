"""What tasks ask of later rooms: of writing, judging and arenas."""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from core.questions import Unanswered, question
from tasks.budgets import Used
from tasks.models import Round, Task


@question
def writers(round: Round, at: datetime, since: datetime | None = None) -> QuerySet[Any]:
    """Return the assignments on which somebody was writing at that time, one for each person.

    They are current, and were assigned, saved or sent within `WRITING_TIME` before, and after
    `since` where it is given. A person who has seen a verdict and typed nothing since has finished.
    """
    raise Unanswered


@question
def has_examples(round: Round) -> bool:
    """Return whether anything was written in the round, retracted examples included."""
    raise Unanswered


@question
def used_of(round: Round) -> Used:
    """Return what the round has used of its budget; 0 for what has no limit.

    What programs write uses up nothing; votes on it do.
    """
    raise Unanswered


@question
def are_used() -> Q:
    """Return the condition of contexts that were assigned, written about or reported."""
    raise Unanswered


@question
def is_named_in_examples(task: Task, digest: str, retracted: bool) -> bool:
    """Return whether an example of the task names a media file.

    retracted: whether retracted examples count.
    """
    raise Unanswered


@question
def have_contestants() -> Q:
    """Return the condition of tasks in whose arena models take part."""
    raise Unanswered
