"""News about people's assignments, for the digest and their own page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from core.accounts.models import User
from tasks.members.assignments.rules import news
from tasks.members.assignments.selectors import may_be_asked
from tasks.models import Duty, Round, Task
from validation.judging.assignments import assignments_of, progress_of

UNFINISHED = ("open", "late")
"""States of an assignment whose work is not done."""


@dataclass(frozen=True)
class AssignmentNews:
    """The news that somebody was assigned work, or that it is due tomorrow or overdue.

    began_at: since when.
    """

    kind: str
    assignment: Duty
    began_at: datetime

    @property
    def task(self) -> Task:
        """Return the task whose owners ask for it."""
        return self.assignment.task

    @property
    def task_id(self) -> int:
        """Return the task's id, as a notice has it."""
        return self.assignment.task_id


def assignment_news(now: datetime) -> Iterator[tuple[User, AssignmentNews]]:
    """Yield the news about assignments of all members, done or not, with the person of each.

    A query for each task that asks everybody.
    """
    # Nothing can be written or judged in a released round.
    over = Q(round__state=Round.State.RELEASED)
    assignments = Duty.objects.standing().exclude(over).select_related("task", "round", "person")
    for assignment in assignments.order_by("task__name", "pk"):
        # An assignment without a person is for everybody who may do such work.
        people = (
            [assignment.person]
            if assignment.person
            else may_be_asked(assignment.task, assignment.kind)
        )
        kind, began_at = news(assignment.set_at, assignment.due_on, now)
        for user in people:
            if user.is_active:
                yield user, AssignmentNews(kind, assignment, began_at)


def own_assignment_news(user: User, now: datetime) -> list[AssignmentNews]:
    """Return what one person is asked for and has yet to finish, as `assignments_of` lists it."""
    items = []
    for progress in assignments_of(user):
        if progress.state in UNFINISHED:
            assignment = progress.assignment
            kind, began_at = news(assignment.set_at, assignment.due_on, now)
            items.append(AssignmentNews(kind, assignment, began_at))
    return items


def undone(user: User, items: Sequence[AssignmentNews]) -> list[AssignmentNews]:
    """Return the news about work that the person has yet to finish. Five queries, or none."""
    if not items:
        return []
    assignments = Duty.objects.standing().filter(pk__in=[item.assignment.pk for item in items])
    unfinished = set()
    for progress in progress_of(assignments, user):
        if progress.state in UNFINISHED:
            unfinished.add(progress.assignment.pk)
    return [item for item in items if item.assignment.pk in unfinished]
