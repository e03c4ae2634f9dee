"""Find an adversary for whoever may run its program."""

from django.http import Http404, HttpRequest
from rest_framework.request import Request

from core.accounts.people import get_person
from dynabench.adversaries.fit import can_run_adversaries, can_run_program
from dynabench.adversaries.models import Adversary
from tasks.access import find_task, require_permission


def find_runnable_adversary(request: HttpRequest | Request, code: str, pk: int) -> Adversary:
    """Return a task's adversary, for editors and for the account that runs its program.

    Raises Http404 and PermissionDenied.
    """
    task, person = find_task(request, code), get_person(request)
    adversary = task.adversaries.select_related("task").filter(pk=pk).first()
    if adversary is None or not can_run_program(person, adversary):
        # As the pages about adversaries answer to whoever may not see them.
        require_permission(person, task, can_run_adversaries)
        raise Http404
    return adversary
