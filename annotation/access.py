"""Who may enter a task's pages; for the pages of this stage and of those after it."""

from collections.abc import Callable

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from annotation import selectors
from dynabench.accounts.models import Annotator, User
from dynabench.accounts.services import annotator_of
from tasks.models import Task
from tasks.permissions import Person, can_annotate, can_edit, can_see


def find_task(
    request: HttpRequest, code: str, may: Callable[[Person, Task], bool] = can_see
) -> Task:
    """The task, for those who `may`; for everybody else it is not there."""
    task = get_object_or_404(Task, code=code)
    if not may(request.user, task):
        raise Http404
    return task


def find_edited(request: HttpRequest, code: str) -> tuple[Task, User]:
    """The task and its editor; for everybody else it is not there."""
    task = find_task(request, code, can_edit)
    assert isinstance(request.user, User)  # editors are signed in
    return task, request.user


def writer(request: HttpRequest, task: Task) -> Annotator:
    """The signed-in person's annotator, if they may write or judge for the task."""
    if not can_annotate(request.user, task):
        raise Http404
    return annotator_of(request.user)  # type: ignore[arg-type]


def gate_is_shut(request: HttpRequest, task: Task) -> bool:
    """Whether the person has yet to read a sensitive task's warning."""
    if not task.is_sensitive or request.session.get(f"gate-{task.pk}"):
        return False
    user = request.user
    return not user.is_authenticated or not selectors.has_passed_gate(annotator_of(user), task)  # type: ignore[arg-type]
