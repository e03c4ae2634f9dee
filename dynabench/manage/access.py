"""Access to an owner's pages."""

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from annotation.models import Report
from dynabench.notices.registry import list_kinds_with_mails
from tasks.access import ALL_KINDS, PermissionCheck, find_task
from tasks.models import Round, Task
from tasks.permissions import can_manage, can_review
from tasks.targets.failures import find_failures


def find_owned_task(
    request: HttpRequest, code: str, permission_check: PermissionCheck = can_review
) -> Task:
    """Return the task if the user passes the permission check, by default that of reviewers.

    Raises Http404 or PermissionDenied for other users, as `find_task` does.
    """
    # Arenas, too: their owners share the pages of members, the log and the configuration.
    return find_task(request, code, permission_check, kinds=ALL_KINDS)


def find_owned_round(
    request: HttpRequest, code: str, number: int, permission_check: PermissionCheck = can_review
) -> Round:
    """Return the task's round with this number.

    Checks permission and raises as `find_owned_task` does.
    """
    return get_object_or_404(find_owned_task(request, code, permission_check).rounds, number=number)


def build_attention_values(request: HttpRequest, task: Task) -> dict[str, Any]:
    """Return what needs the person's attention: open reports, failing targets, other notices.

    Empty for people who may not manage the task.
    """
    if not can_manage(request.user, task):
        return {}
    open_reports = 0
    if can_review(request.user, task):
        reports = Report.objects.filter(context__round__task=task, resolved_at=None)
        open_reports = reports.count()
    # Reports and failing targets have lines of their own here.
    notices = task.notices.filter(ended_at=None).exclude(kind__in=list_kinds_with_mails())
    return {
        "open_reports": open_reports,
        "failing": find_failures(task),
        "notices": notices.select_related("task").order_by("pk"),
    }
