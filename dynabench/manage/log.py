"""The log of a task: who did what, for its members."""

from collections.abc import Collection

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.accounts.models import LogEntry
from core.web.lists import list_page
from dynabench.manage.access import find_owned_task
from tasks.permissions import can_own, can_read, can_review

PAGE_SIZE = 50
MACHINE_KEYS = ("examples", "run")
"""Keys for programs, such as the examples that one action changed."""
ACCOUNT_KEYS = ("user",)
"""Keys that name an account; only owners know the accounts of members."""
PERSONAL_ACTIONS = ("submission", "run", "weights", "webhook", "token", "person")
"""Actions on people's own things; who submitted a model may be secret."""
REVIEWER_ACTIONS = ("gold", "consensus", "tag")
"""Actions that would tell a judge the answer."""


@require_safe
def log(request: HttpRequest, code: str) -> HttpResponse:
    """Show the task's log, newest entries first."""
    task = find_owned_task(request, code, can_read)
    may_review = can_review(request.user, task)
    reviewed = [code] if may_review else []
    entries = find_readable_entries([code], reviewed).select_related("actor__annotator")
    page = list_page(request, entries.order_by("-pk"), size=PAGE_SIZE)
    hidden: tuple[str, ...] = MACHINE_KEYS
    if not can_own(request.user, task):
        hidden = MACHINE_KEYS + ACCOUNT_KEYS
    entry_rows = []
    for entry in page:
        facts = [(name, value) for name, value in entry.data.items() if name not in hidden]
        entry_rows.append((entry, facts))
    values = {"task": task, "page": page, "entries": entry_rows, "names": may_review}
    return render(request, "own/log.html", values)


def find_readable_entries(
    readable_codes: Collection[str], reviewed_codes: Collection[str]
) -> QuerySet[LogEntry]:
    """Return the log entries that a person may read.

    readable_codes: of the tasks that the person reads. reviewed_codes: of the tasks that the person
    reviews; only their entries that reveal an answer are included.
    """
    open_to_readers = match_tasks(readable_codes) & ~_match_kinds(REVIEWER_ACTIONS)
    return LogEntry.objects.filter(match_tasks(reviewed_codes) | open_to_readers).exclude(
        _match_kinds(PERSONAL_ACTIONS)
    )


def match_tasks(codes: Collection[str]) -> Q:
    """Return the condition for entries of these tasks.

    Older entries name their task only at the beginning of `target`.
    """
    # Entries from before the column `task` existed.
    older = Q(target__in=codes)
    for code in codes:
        older |= Q(target__startswith=f"{code} round ")
    return Q(task__in=codes) | Q(older, task="")


def _match_kinds(kinds: Collection[str]) -> Q:
    return Q(action__regex=rf"^({'|'.join(kinds)})\.")
