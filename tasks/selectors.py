"""Reads about tasks."""

from collections.abc import Sequence

from django.db.models import Q

from tasks.models import Task
from tasks.permissions import Person


def listed_tasks(user: Person) -> Sequence[Task]:
    """The tasks that this person may see, by name."""
    tasks = Task.objects.all()
    if user.is_superuser:
        return list(tasks)
    shown = Q(is_visible=True)
    if user.is_authenticated:
        shown |= Q(members__user=user.pk)
    return list(tasks.filter(shown).distinct())
