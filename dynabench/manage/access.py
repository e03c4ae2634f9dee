"""Who may enter an owner's pages."""

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from annotation.models import Report
from dynabench.notices.models import TOLD_APART
from tasks.access import ANY, May, find_task
from tasks.models import Round, Task
from tasks.permissions import can_manage, can_review
from tasks.targets.failures import failing


def owned_task(request: HttpRequest, code: str, may: May = can_review) -> Task:
    """The task, for reviewers or those who `may`; refuses everybody else."""
    return find_task(request, code, may, kinds=ANY)


def owned_round(request: HttpRequest, code: str, number: int, may: May = can_review) -> Round:
    """A round of such a task."""
    return get_object_or_404(owned_task(request, code, may).rounds, number=number)


def waiting(request: HttpRequest, task: Task) -> dict[str, Any]:
    """What waits for the person on the pages of the task: open reports, targets that fail."""
    if not can_manage(request.user, task):
        return {}
    reports = Report.objects.filter(context__round__task=task, resolved_at=None)
    notices = task.notices.filter(ended_at=None).exclude(kind__in=TOLD_APART)
    return {
        "open_reports": reports.count() if can_review(request.user, task) else 0,
        "failing": failing(task),
        "notices": notices.select_related("task").order_by("pk"),
    }
