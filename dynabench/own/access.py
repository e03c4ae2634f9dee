"""Who may enter an owner's pages."""

from collections.abc import Callable

from django.http import HttpRequest

from tasks.access import find_task
from tasks.models import Task
from tasks.permissions import Person, can_moderate


def owned_task(
    request: HttpRequest, code: str, may: Callable[[Person, Task], bool] = can_moderate
) -> Task:
    """The task, for moderators or those who `may`; for everybody else it is not there."""
    return find_task(request, code, may)
