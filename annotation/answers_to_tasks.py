"""Annotation's implementations of the questions in `tasks.questions`."""

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
    """Return the current assignments on which people were writing shortly before `at`.

    People count as writing if, within WRITING_TIME, their draft was saved, or their targets were
    asked and have not answered. A recent assignment or attempt also counts, unless the attempt is
    done and no new conversation has begun.

    since: if given, activity before this time does not count.
    """
    earliest = at - WRITING_TIME
    since = max(earliest, since or earliest)
    was_asked_recently = Q(assigned_at__gte=since) | Q(attempt__asked_at__gte=since)
    # Whoever has submitted, and begun no conversation since, is not writing any more.
    is_unfinished = ~Q(attempt__state="done") | Q(conversation__isnull=False)
    is_active = (
        Q(draft_saved_at__gte=since)
        | Q(attempt__asked_at__gte=since, attempt__state="asking")
        | was_asked_recently & is_unfinished
    )
    # The join with attempts repeats assignments.
    return round.assignment_set.filter(is_active, left_at__isnull=True).distinct()


@questions.has_examples.answer
def has_examples(round: Round) -> bool:
    """Return whether the round has an example."""
    return round.examples.exists()


@questions.build_used_contexts_condition.answer
def build_used_contexts_condition() -> Q:
    """Return the condition for contexts to which an assignment, an example or a report refers."""
    return Q(assignments__isnull=False) | Q(examples__isnull=False) | Q(reports__isnull=False)


@questions.is_named_in_examples.answer
def is_named_in_examples(task: Task, digest: str, include_retracted: bool) -> bool:
    """Return whether the inputs of an example of the task contain the file's digest.

    include_retracted: whether retracted examples count, too.
    """
    examples = Example.objects.filter(round__task=task)
    if not include_retracted:
        examples = examples.filter(retracted_at=None)
    # As text, because any field may name a file, at any depth.
    inputs = examples.annotate(text=Cast("inputs", TextField()))
    return inputs.filter(text__contains=digest).exists()
