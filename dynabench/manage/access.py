"""Access to an owner's pages."""

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from dynabench.notices.manage_counts import WaitingWork, count_waiting_work
from dynabench.notices.registry import list_kinds_with_mails
from tasks.access import ALL_KINDS, PermissionCheck, find_task
from tasks.models import Round, Task
from tasks.permissions import can_manage, can_review
from tasks.targets.failures import find_failures


def find_owned_task(
    request: HttpRequest, code: str, permission_check: PermissionCheck = can_review
) -> Task:
    """Return the task if the user passes the permission check.

    permission_check: by default, whether the user is a reviewer. Raises Http404 or
    PermissionDenied for other users. See `find_task`.
    """
    # Arenas, too: their owners share the pages of members, the log and the configuration.
    return find_task(request, code, permission_check, kinds=ALL_KINDS)


def find_owned_round(
    request: HttpRequest, code: str, number: int, permission_check: PermissionCheck = can_review
) -> Round:
    """Return the task's round with this number.

    Checks the permission and raises errors like `find_owned_task`; Http404 if there is no such
    round.
    """
    return get_object_or_404(find_owned_task(request, code, permission_check).rounds, number=number)


def build_attention_values(request: HttpRequest, task: Task) -> dict[str, Any]:
    """Return the template's values for what needs attention in the task.

    These are undecided examples for reviewers, and reports, failing targets and notices for people
    who may manage the task.
    """
    # The same count as in the list at the side and on the page of all tasks.
    work = WaitingWork()
    if can_review(request.user, task):
        work = count_waiting_work([task.pk])[task.pk]
    values: dict[str, Any] = {"undecided": work.undecided_count}
    if not can_manage(request.user, task):
        return values
    # Reports and failing targets have lines of their own here.
    notices = task.notices.filter(ended_at=None).exclude(kind__in=list_kinds_with_mails())
    return values | {
        "open_reports": work.report_count,
        "failing": find_failures(task),
        "notices": notices.select_related("task").order_by("pk"),
    }
