"""Annotation's answers to what tasks ask (`tasks.questions`)."""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from annotation.models import Example
from tasks import questions
from tasks.models import Round, Task
from tasks.writing_time import WRITING_TIME


@questions.find_writers.answer
def find_writers(round: Round, at: datetime, since: datetime | None = None) -> QuerySet[Any]:
    """Return the current assignments with recent activity and without a finished attempt."""
    earliest = at - WRITING_TIME
    since = max(earliest, since or earliest)
    lately = Q(assigned_at__gte=since) | Q(attempt__asked_at__gte=since)
    # Whoever has submitted, and begun no conversation since, is not writing any more.
    is_unfinished = ~Q(attempt__state="done") | Q(conversation__isnull=False)
    active = (
        Q(draft_saved_at__gte=since)
        | Q(attempt__asked_at__gte=since, attempt__state="asking")
        | lately & is_unfinished
    )
    # The join with attempts repeats assignments.
    return round.assignment_set.filter(active, left_at__isnull=True).distinct()


@questions.has_examples.answer
def has_examples(round: Round) -> bool:
    """Return whether the round has an example."""
    return round.examples.exists()


@questions.are_used.answer
def are_used() -> Q:
    """Return the condition that an assignment, an example or a report refers to the row."""
    return Q(assignments__isnull=False) | Q(examples__isnull=False) | Q(reports__isnull=False)


@questions.is_named_in_examples.answer
def is_named_in_examples(task: Task, digest: str, retracted: bool) -> bool:
    """Return whether an example's inputs, as text, contain the digest."""
    examples = Example.objects.filter(round__task=task)
    if not retracted:
        examples = examples.filter(retracted_at=None)
    # As text, because any field may name a file, at any depth.
    inputs = examples.annotate(text=Cast("inputs", TextField()))
    return inputs.filter(text__contains=digest).exists()
