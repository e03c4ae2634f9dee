"""News about people's assignments, for the digest and for their own page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from core.accounts.models import User
from tasks.members.assignments.rules import find_reminder
from tasks.members.assignments.selectors import list_assignable_people
from tasks.models import Duty, Round, Task
from validation.judging.assignments import list_assignment_rows, list_assignments

UNFINISHED = ("open", "late")
"""The states of an assignment whose work is not done."""


@dataclass(frozen=True)
class AssignmentNews:
    """News that a person was assigned work, or that it is due tomorrow or overdue.

    began_at: when that happened.
    """

    kind: str
    assignment: Duty
    began_at: datetime

    @property
    def task(self) -> Task:
        """Return the task in which the work is assigned."""
        return self.assignment.task

    @property
    def task_id(self) -> int:
        """Return the task's id, like `Notice.task_id`."""
        return self.assignment.task_id


def find_assignment_news(now: datetime) -> Iterator[tuple[User, AssignmentNews]]:
    """Yield (person, news) about the assignments of all members, finished or not.

    One query for each task that assigns work to everybody.
    """
    # Nothing can be written or judged in a released round.
    is_in_released_round = Q(round__state=Round.State.RELEASED)
    assignments = (
        Duty.objects.select_current()
        .exclude(is_in_released_round)
        .select_related("task", "round", "person")
    )
    for assignment in assignments.order_by("task__name", "pk"):
        # An assignment without a person is for everybody who may do such work.
        people = (
            [assignment.person]
            if assignment.person
            else list_assignable_people(assignment.task, assignment.kind)
        )
        kind, began_at = find_reminder(assignment.set_at, assignment.due_on, now)
        for user in people:
            if user.is_active:
                yield user, AssignmentNews(kind, assignment, began_at)


def list_own_assignment_news(user: User, now: datetime) -> list[AssignmentNews]:
    """Return news about one person's unfinished assignments."""
    items = []
    for progress in list_assignments(user):
        if progress.state in UNFINISHED:
            assignment = progress.assignment
            kind, began_at = find_reminder(assignment.set_at, assignment.due_on, now)
            items.append(AssignmentNews(kind, assignment, began_at))
    return items


def filter_unfinished(user: User, items: Sequence[AssignmentNews]) -> list[AssignmentNews]:
    """Return the news about assignments that the person has not finished.

    Five queries, or none if there is no news.
    """
    if not items:
        return []
    assignments = Duty.objects.select_current().filter(
        pk__in=[item.assignment.pk for item in items]
    )
    unfinished_ids = set()
    for progress in list_assignment_rows(assignments, user):
        if progress.state in UNFINISHED:
            unfinished_ids.add(progress.assignment.pk)
    return [item for item in items if item.assignment.pk in unfinished_ids]
