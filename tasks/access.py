"""Who may enter a task's pages and its part of the API."""

from collections.abc import Callable

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from dynabench.accounts.models import User
from tasks.models import Task
from tasks.permissions import Person, can_edit, can_see


def find_task(
    request: HttpRequest | Request, code: str, may: Callable[[Person, Task], bool] = can_see
) -> Task:
    """The task, for those who `may`; for everybody else it is not there."""
    task = get_object_or_404(Task, code=code)
    if not may(request.user, task):
        raise Http404
    return task


def find_edited(request: HttpRequest | Request, code: str) -> tuple[Task, User]:
    """The task and its editor; for everybody else it is not there."""
    task = find_task(request, code, can_edit)
    assert isinstance(request.user, User)  # editors are signed in
    return task, request.user
