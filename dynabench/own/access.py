"""Who may enter an owner's pages."""

from collections.abc import Callable

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from tasks.models import Task
from tasks.permissions import Person, can_moderate, role_of


def owned_task(
    request: HttpRequest, code: str, may: Callable[[Person, Task], bool] = can_moderate
) -> Task:
    """The task, for those who `may`; for everybody else it is not there."""
    task = get_object_or_404(Task, code=code)
    if not may(request.user, task):
        raise Http404
    return task


def is_member(user: Person, task: Task) -> bool:
    """Whether the person may read what is not public: anybody with a role in the task."""
    return role_of(user, task) is not None or (user.is_authenticated and user.is_superuser)
