"""What waits for people who run tasks: examples without a consensus, and open reports.

The session stores the number in the header, so most pages read it without a query. It is counted at
sign-in, on the page of all tasks, and by the next page once it is older than MAX_COUNT_AGE.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, QuerySet, Value
from django.http import HttpRequest
from django.utils import timezone

from core.accounts.models import User
from core.accounts.people import get_person
from core.web.htmx import is_htmx_partial
from dynabench.notices.counting import select_open_reports
from dynabench.notices.inbox import MAX_COUNT_AGE
from dynabench.waiting import count_waiting_decisions
from tasks.models import TaskMember
from tasks.permissions import READERS, REVIEWERS
from validation.decisions.review_queue import CANDIDATE_CONDITIONS, Kind
from validation.models import Consensus

SESSION_KEY = "manage"
"""The session's key of the entry."""


@dataclass(frozen=True)
class ManageEntry:
    """The header's entry for people who run tasks.

    is_offered: whether the person sees it. count: the number of things that wait for them.
    """

    is_offered: bool = False
    count: int = 0


@dataclass
class WaitingWork:
    """What waits in one task: undecided examples and open reports."""

    undecided_count: int = 0
    report_count: int = 0


def count_waiting_work(tasks: Collection[int]) -> defaultdict[int, WaitingWork]:
    """Return what waits in the tasks, by task id; zeros for other ids. One query."""
    undecided_examples = Consensus.objects.filter(
        CANDIDATE_CONDITIONS[Kind.NO_CONSENSUS],
        round__task__in=tasks,
        example__retracted_at__isnull=True,
    )
    reports, comments = select_open_reports()
    reports = reports.filter(context__round__task__in=tasks)
    comments = comments.filter(example__round__task__in=tasks)
    counts = _count_by_task(undecided_examples, "round__task", "review").union(
        _count_by_task(reports, "context__round__task", "reports"),
        _count_by_task(comments, "example__round__task", "reports"),
        all=True,
    )
    work_by_task: defaultdict[int, WaitingWork] = defaultdict(WaitingWork)
    for task, kind, count in counts:
        work = work_by_task[task]
        if kind == "review":
            work.undecided_count += count
        else:
            work.report_count += count
    return work_by_task


def _count_by_task(rows: QuerySet[Any], path: str, kind: str) -> QuerySet[Any, Any]:
    """Return (task id, kind, count) rows. path: the lookup of the task's id."""
    # Without the default order, whose columns would be part of each group.
    rows_with_kind = rows.order_by().annotate(kind=Value(kind))
    counts: QuerySet[Any, Any] = rows_with_kind.values_list(path, "kind").annotate(Count("pk"))
    return counts


def get_manage_entry(request: HttpRequest) -> ManageEntry:
    """Return the entry from the session, or one that is not offered if the session has none.

    A missing or outdated entry is counted again if the request is for a full page.
    """
    # None: they signed in before this was counted.
    values = request.session.get(SESSION_KEY)
    # Answers to forms and parts of pages show no header, or the one that is there.
    is_page = request.method == "GET" and not is_htmx_partial(request)
    if is_page and (values is None or _is_outdated(request, *values)):
        return renew_manage_entry(request)
    if values is None:
        return ManageEntry()
    return ManageEntry(values[0], values[1])


def renew_manage_entry(request: HttpRequest) -> ManageEntry:
    """Count what waits for the signed-in person, and store it in the session."""
    entry = _count_entry(get_person(request))
    request.session[SESSION_KEY] = (entry.is_offered, entry.count, timezone.now().isoformat())
    return entry


def _count_entry(user: User) -> ManageEntry:
    """Return the person's entry. One query, and three more for people with a role."""
    if user.is_panel_participant or not user.is_active:
        return ManageEntry()
    members = TaskMember.objects.select_effective().filter(user=user, role__in=READERS)
    memberships = list(members.values_list("task", "role", "is_blind"))
    # Owners who judge blind must not learn what votes have decided.
    reviewed_tasks = []
    for task, role, is_blind in memberships:
        if role in REVIEWERS and not is_blind:
            reviewed_tasks.append(task)
    count = 0
    if reviewed_tasks:
        for work in count_waiting_work(reviewed_tasks).values():
            count += work.undecided_count + work.report_count
    if user.is_superuser:
        count += count_waiting_decisions()
    return ManageEntry(bool(memberships) or user.is_superuser, count)


def _is_outdated(request: HttpRequest, is_offered: bool, count: int, counted_at: str) -> bool:
    # Whoever opens an owners' page may have got the role a moment ago.
    if not is_offered and request.path.startswith("/own/"):
        return True
    return datetime.fromisoformat(counted_at) < timezone.now() - MAX_COUNT_AGE
