"""Access to a task's pages and its part of the API, for this stage and the later ones."""

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from annotation import selectors
from core.accounts.models import Annotator
from core.accounts.services import get_annotator
from tasks.access import PermissionCheck, require_permission
from tasks.models import Context, Task
from tasks.permissions import can_write


def require_annotator(
    request: HttpRequest | Request, task: Task, permission: PermissionCheck = can_write
) -> Annotator:
    """Return the signed-in person's annotator, creating one if there is none.

    permission: the check that the person must pass. Raises the errors of `require_permission`.
    """
    require_permission(request.user, task, permission)
    return get_annotator(request.user)  # type: ignore[arg-type]


def is_gate_shut(request: HttpRequest | Request, task: Task) -> bool:
    """Return whether the person must first read the task's content warning."""
    # People without an account pass the gate for their session only (`writing.views.gate`).
    if not task.is_sensitive or request.session.get(f"gate-{task.pk}"):
        return False
    user = request.user
    return not user.is_authenticated or not selectors.has_passed_gate(get_annotator(user), task)  # type: ignore[arg-type]


def find_assigned_context(request: HttpRequest | Request, pk: int) -> tuple[Context, Annotator]:
    """Return a context that was assigned to the signed-in person, and their annotator.

    Raises Http404 if it was not.
    """
    annotator = get_annotator(request.user)  # type: ignore[arg-type]
    # A person may have been given a context more than once.
    contexts = Context.objects.filter(assignments__annotator=annotator).distinct()
    return get_object_or_404(contexts.select_related("round__task"), pk=pk), annotator
