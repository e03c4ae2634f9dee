"""Questions of this room to later rooms, about writing, judging and arenas."""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from core.questions import UnansweredQuestion, declare_question
from tasks.budgets import UsedBudget
from tasks.models import Round, Task


@declare_question
def find_writers(round: Round, at: datetime, since: datetime | None = None) -> QuerySet[Any]:
    """Return the context assignments of people who were writing at the time `at`, one per person.

    Each was assigned, saved or sent within `WRITING_TIME` before `at` and, if `since` is given,
    after `since`. Omits people who saw a verdict and have typed nothing since.
    """
    raise UnansweredQuestion


@declare_question
def has_examples(round: Round) -> bool:
    """Return whether the round has any examples, including retracted ones."""
    raise UnansweredQuestion


@declare_question
def get_used_budget(round: Round) -> UsedBudget:
    """Return how much of its budget the round has used; 0 for amounts without a limit.

    Examples by programs do not count, but votes on them do.
    """
    raise UnansweredQuestion


@declare_question
def build_used_contexts_condition() -> Q:
    """Return the condition for contexts that were assigned, written about or reported."""
    raise UnansweredQuestion


@declare_question
def is_named_in_examples(task: Task, digest: str, include_retracted: bool) -> bool:
    """Return whether an example of the task refers to a media file.

    include_retracted: whether retracted examples count.
    """
    raise UnansweredQuestion


@declare_question
def build_contestants_condition() -> Q:
    """Return the condition for tasks whose arena has models."""
    raise UnansweredQuestion


@declare_question
def is_rehearsed(task: Task) -> bool:
    """Return whether only simulated people work in the task, so that nothing of it may count."""
    raise UnansweredQuestion


@declare_question
def find_deletion_problem(task: Task) -> str:
    """Return what must be deleted before a task that never opened; "" if nothing."""
    raise UnansweredQuestion
