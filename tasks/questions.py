"""What tasks ask of later rooms: of writing, judging and arenas."""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from core.questions import Unanswered, question
from tasks.budgets import UsedBudget
from tasks.models import Round, Task


@question
def find_writers(round: Round, at: datetime, since: datetime | None = None) -> QuerySet[Any]:
    """Return the assignments on which somebody was writing at a time, one per person.

    They are current, and were assigned, saved or sent within `WRITING_TIME` before `at`, and after
    `since` if it is given. A person who has seen a verdict and typed nothing since has finished.
    """
    raise Unanswered


@question
def has_examples(round: Round) -> bool:
    """Return whether the round has any examples, retracted ones included."""
    raise Unanswered


@question
def get_used_budget(round: Round) -> UsedBudget:
    """Return how much of its budget the round has used; 0 for what has no limit.

    Examples by programs do not count, but votes on them do.
    """
    raise Unanswered


@question
def are_used() -> Q:
    """Return the condition for contexts that were assigned, written about or reported."""
    raise Unanswered


@question
def is_named_in_examples(task: Task, digest: str, retracted: bool) -> bool:
    """Return whether an example of the task refers to a media file.

    retracted: whether retracted examples count.
    """
    raise Unanswered


@question
def have_contestants() -> Q:
    """Return the condition for tasks whose arena has models."""
    raise Unanswered
