"""Reads about tasks."""

from collections.abc import Sequence

from django.db.models import Prefetch, Q, prefetch_related_objects

from tasks.models import Round, RoundTarget, Task
from tasks.permissions import Person


def targets_of(round: Round) -> Sequence[RoundTarget]:
    """The round's targets in their order; one query, which `Round.target_names` then needs not."""
    entries = RoundTarget.objects.select_related("target__task")
    prefetch_related_objects([round], Prefetch("round_targets", entries))
    return list(round.round_targets.all())


def listed_tasks(user: Person) -> Sequence[Task]:
    """The tasks that this person may see, by name."""
    tasks = Task.objects.all()
    if user.is_superuser:
        return list(tasks)
    shown = Q(is_visible=True)
    if user.is_authenticated:
        shown |= Q(members__user=user.pk)
    return list(tasks.filter(shown).distinct())
