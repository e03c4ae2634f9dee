"""The log of a task: who did what, for its members."""

from collections.abc import Collection

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.accounts.models import LogEntry
from dynabench.manage.access import owned_task
from tasks.permissions import can_own, can_read, can_review

A_PAGE = 50
LONG = ("examples", "run")
"""Keys for programs: which examples one action changed."""
PRIVATE = ("user",)
"""Keys that name an account; owners alone know the accounts of members."""
PERSONAL = ("submission", "run", "weights", "webhook", "token", "person")
"""What people do with their own; who handed a model in may be kept secret."""
OF_REVIEWERS = ("gold", "consensus", "tag")
"""What would tell a judge the answer."""


@require_safe
def log(request: HttpRequest, code: str) -> HttpResponse:
    """All that was done in the task, the newest first."""
    task = owned_task(request, code, can_read)
    reviews = can_review(request.user, task)
    entries = told([code], [code] if reviews else []).select_related("actor__annotator")
    page = Paginator(entries.order_by("-pk"), A_PAGE).get_page(request.GET.get("page"))
    hidden = LONG if can_own(request.user, task) else LONG + PRIVATE
    listed = [
        (entry, [(name, value) for name, value in entry.data.items() if name not in hidden])
        for entry in page
    ]
    values = {"task": task, "page": page, "entries": listed, "names": reviews}
    return render(request, "own/log.html", values)


def told(reads: Collection[str], reviews: Collection[str]) -> QuerySet[LogEntry]:
    """What was logged of tasks, by code, for somebody who reads these and reviews some of them."""
    open_to_readers = of(reads) & ~_of_kinds(OF_REVIEWERS)
    return LogEntry.objects.filter(of(reviews) | open_to_readers).exclude(_of_kinds(PERSONAL))


def of(codes: Collection[str]) -> Q:
    """What was logged of these tasks; older entries name theirs in words alone."""
    older = Q(target__in=codes)
    for code in codes:
        older |= Q(target__startswith=f"{code} round ")
    return Q(task__in=codes) | Q(older, task="")


def _of_kinds(kinds: Collection[str]) -> Q:
    return Q(action__regex=rf"^({'|'.join(kinds)})\.")
