"""Who may enter an owner's pages."""

from collections.abc import Callable

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from tasks.models import Task
from tasks.permissions import Person, can_moderate


def owned_task(
    request: HttpRequest, code: str, may: Callable[[Person, Task], bool] = can_moderate
) -> Task:
    """The task, for those who `may`; for everybody else it is not there."""
    task = get_object_or_404(Task, code=code)
    if not may(request.user, task):
        raise Http404
    return task
