"""The log of a task: who did what, for its members."""

from collections.abc import Collection

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.accounts.models import LogEntry
from core.web.lists import list_page
from dynabench.manage.access import owned_task
from tasks.permissions import can_own, can_read, can_review

A_PAGE = 50
LONG = ("examples", "run")
"""Keys for programs, such as the examples that one action changed."""
PRIVATE = ("user",)
"""Keys that name an account; only owners know the accounts of members."""
PERSONAL = ("submission", "run", "weights", "webhook", "token", "person")
"""Actions on people's own things; who submitted a model may be secret."""
OF_REVIEWERS = ("gold", "consensus", "tag")
"""Actions that would tell a judge the answer."""


@require_safe
def log(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task's log, newest entries first."""
    task = owned_task(request, code, can_read)
    reviews = can_review(request.user, task)
    reviewed = [code] if reviews else []
    entries = readable_entries([code], reviewed).select_related("actor__annotator")
    page = list_page(request, entries.order_by("-pk"), size=A_PAGE)
    hidden: tuple[str, ...] = LONG
    if not can_own(request.user, task):
        hidden = LONG + PRIVATE
    listed = []
    for entry in page:
        facts = [(name, value) for name, value in entry.data.items() if name not in hidden]
        listed.append((entry, facts))
    values = {"task": task, "page": page, "entries": listed, "names": reviews}
    return render(request, "own/log.html", values)


def readable_entries(reads: Collection[str], reviews: Collection[str]) -> QuerySet[LogEntry]:
    """Return the log entries that a person may read.

    reads: codes of the tasks that the person reads. reviews: codes of the tasks that the person
    reviews; only their entries that reveal an answer are included.
    """
    open_to_readers = of_tasks(reads) & ~_of_kinds(OF_REVIEWERS)
    return LogEntry.objects.filter(of_tasks(reviews) | open_to_readers).exclude(_of_kinds(PERSONAL))


def of_tasks(codes: Collection[str]) -> Q:
    """Return the condition for entries of these tasks.

    Older entries name their task only at the beginning of `target`.
    """
    # Entries from before the column `task` existed.
    older = Q(target__in=codes)
    for code in codes:
        older |= Q(target__startswith=f"{code} round ")
    return Q(task__in=codes) | Q(older, task="")


def _of_kinds(kinds: Collection[str]) -> Q:
    return Q(action__regex=rf"^({'|'.join(kinds)})\.")
