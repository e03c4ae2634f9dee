"""News about people's assignments, for the digest and their own page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from core.accounts.models import User
from tasks.members.duties.rules import news
from tasks.members.duties.selectors import may_be_asked
from tasks.models import Duty, Round, Task
from validation.judging.duties import duties_of, progress_of

UNFINISHED = ("open", "late")
"""States of an assignment whose work is not done."""


@dataclass(frozen=True)
class DutyNews:
    """The news that somebody was assigned work, or that it is due tomorrow or overdue.

    began_at: since when.
    """

    kind: str
    duty: Duty
    began_at: datetime

    @property
    def task(self) -> Task:
        """Return the task whose owners ask for it."""
        return self.duty.task

    @property
    def task_id(self) -> int:
        """Return the task's id, as a notice has it."""
        return self.duty.task_id


def duty_news(now: datetime) -> Iterator[tuple[User, DutyNews]]:
    """Yield the news about assignments of all members, done or not, with the person of each.

    A query for each task that asks everybody.
    """
    # Nothing can be written or judged in a released round.
    over = Q(round__state=Round.State.RELEASED)
    duties = Duty.objects.standing().exclude(over).select_related("task", "round", "person")
    for duty in duties.order_by("task__name", "pk"):
        # An assignment without a person is for everybody who may do such work.
        people = [duty.person] if duty.person else may_be_asked(duty.task, duty.kind)
        kind, began_at = news(duty.set_at, duty.due_on, now)
        for user in people:
            if user.is_active:
                yield user, DutyNews(kind, duty, began_at)


def own_duty_news(user: User, now: datetime) -> list[DutyNews]:
    """Return what one person is asked for and has yet to finish, as `duties_of` lists it."""
    items = []
    for progress in duties_of(user):
        if progress.state in UNFINISHED:
            duty = progress.duty
            kind, began_at = news(duty.set_at, duty.due_on, now)
            items.append(DutyNews(kind, duty, began_at))
    return items


def undone(user: User, items: Sequence[DutyNews]) -> list[DutyNews]:
    """Return the news about work that the person has yet to finish. Five queries, or none."""
    if not items:
        return []
    duties = Duty.objects.standing().filter(pk__in=[item.duty.pk for item in items])
    unfinished = set()
    for progress in progress_of(duties, user):
        if progress.state in UNFINISHED:
            unfinished.add(progress.duty.pk)
    return [item for item in items if item.duty.pk in unfinished]
