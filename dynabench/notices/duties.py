"""What people should know of their assignments: told in the digest, and on their own page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from core.accounts.models import User
from tasks.members.duties.rules import news
from tasks.members.duties.selectors import may_be_asked
from tasks.models import Duty, Round, Task
from validation.judging.duties import duties_of, progress_of


@dataclass(frozen=True)
class DutyNews:
    """That somebody was assigned work, or that it is due tomorrow or overdue, since `began_at`."""

    kind: str
    duty: Duty
    began_at: datetime

    @property
    def task(self) -> Task:
        """Whose owners ask for it."""
        return self.duty.task

    @property
    def task_id(self) -> int:
        """As of a notice."""
        return self.duty.task_id


def duty_news(now: datetime) -> Iterator[tuple[User, DutyNews]]:
    """What members may be told now, done or not. A query for each task that asks everybody."""
    over = Q(round__state=Round.State.RELEASED)
    duties = Duty.objects.standing().exclude(over).select_related("task", "round", "person")
    for duty in duties.order_by("task__name", "pk"):
        people = [duty.person] if duty.person else may_be_asked(duty.task, duty.kind)
        kind, began_at = news(duty.set_at, duty.due_on, now)
        for user in people:
            if user.is_active:
                yield user, DutyNews(kind, duty, began_at)


def own_duty_news(user: User, now: datetime) -> list[DutyNews]:
    """Return what one person is asked for and has yet to finish, as `duties_of` lists it."""
    rows = [one.duty for one in duties_of(user) if one.state in ("open", "late")]
    return [DutyNews(*_kind_and_begin(duty, now)) for duty in rows]


def _kind_and_begin(duty: Duty, now: datetime) -> tuple[str, Duty, datetime]:
    kind, began_at = news(duty.set_at, duty.due_on, now)
    return kind, duty, began_at


def undone(user: User, told: Sequence[DutyNews]) -> list[DutyNews]:
    """Those whose work the person has yet to finish. Five queries."""
    if not told:
        return []
    duties = Duty.objects.standing().filter(pk__in=[one.duty.pk for one in told])
    open_ones = [one.duty.pk for one in progress_of(duties, user) if one.state in ("open", "late")]
    return [one for one in told if one.duty.pk in open_ones]
