"""Check that people and programs may write or judge through the API."""

from collections.abc import Callable

from django.urls import reverse as page_url
from rest_framework.request import Request
from rest_framework.reverse import reverse

from annotation.access import is_gate_shut, require_annotator
from annotation.care.services import check_rested
from annotation.questions import find_pausing_study
from core.accounts.models import Annotator
from core.errors import Refused
from tasks.access import PermissionCheck
from tasks.models import Task
from tasks.permissions import can_write


def is_program(request: Request) -> bool:
    """Return whether the request was authenticated by a token and not by a session."""
    return request.auth is not None


def authorise_annotator(
    request: Request,
    task: Task,
    check_programs: Callable[[Task], None],
    permission: PermissionCheck = can_write,
) -> Annotator:
    """Return the person's annotator after checking the task's gate and access by programs.

    check_programs: a function that raises ProgramsRefused if programs may not do this. permission:
    the check that the person must pass.

    Raises Refused, and the errors of `require_permission`. A POST is also refused if the person
    needs a rest or is paused.
    """
    annotator = require_annotator(request, task, permission)
    if is_program(request):
        check_programs(task)
    if is_gate_shut(request, task):
        page = request.build_absolute_uri(page_url("annotation:gate", args=[task.code]))
        address = reverse("gate", args=[task.code], request=request)
        raise Refused(
            f"This task begins with a warning. Read and accept it on {page}, or read it in the "
            f"task's configuration and POST to {address}.",
            code="gate",
        )
    # Reading is never refused, so that people see why they must rest.
    if request.method == "POST":
        check_rested(annotator, task)
        _check_not_paused(request, annotator, task)
    return annotator


def _check_not_paused(request: Request, annotator: Annotator, task: Task) -> None:
    """Raise Refused if the person is paused in a campaign of the task."""
    if slug := find_pausing_study(annotator, task):
        page = request.build_absolute_uri(page_url("campaigns:progress", args=[slug]))
        raise Refused(f"You are paused here. Read on {page} why, and what to do.", code="paused")
