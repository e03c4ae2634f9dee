"""Who may enter a task's pages and its part of the API."""

from collections.abc import Callable, Collection

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from dynabench.accounts.models import User
from dynabench.accounts.people import person
from tasks.models import Task
from tasks.permissions import Person, can_edit, can_see

ANY = ("examples", "arena")
"""The kinds of tasks."""


def find_task(
    request: HttpRequest | Request,
    code: str,
    may: Callable[[Person, Task], bool] = can_see,
    *,
    kinds: Collection[str] = ("examples",),
) -> Task:
    """The task, for those who `may`; for everybody else it is not there.

    kinds: of tasks that have what is asked for; ANY of them for what every task has.
    """
    task = get_object_or_404(Task, code=code)
    if not may(request.user, task) or (kinds is not ANY and task.config.kind not in kinds):
        raise Http404
    return task


def find_edited(
    request: HttpRequest | Request, code: str, *, kinds: Collection[str] = ("examples",)
) -> tuple[Task, User]:
    """The task and its editor; for everybody else it is not there."""
    task = find_task(request, code, can_edit, kinds=kinds)
    return task, person(request)
