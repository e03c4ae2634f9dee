"""Reads about duties."""

from collections.abc import Iterable

from django.db.models import Q, QuerySet
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.data.prepared import PreparedRead, Slot
from tasks.models import Round, Task
from tasks.models.duty import Duty
from tasks.roles import May, allowed

MAY = {Duty.Kind.WRITE: May.WRITE, Duty.Kind.JUDGE: May.JUDGE}


WRITING = PreparedRead(
    lambda: Duty.objects.standing().filter(task=Slot("task"), kind=Duty.Kind.WRITE)
)


def standing_of(task: Task) -> QuerySet[Duty]:
    """The task's duties that are not ended."""
    return Duty.objects.standing().filter(task=task)


def applying(duties: Iterable[Duty], round: int, person: int | None) -> Duty | None:
    """The one that holds for somebody in a round, of a task's standing duties of one kind.

    What is set for a round goes before what is set for all, and a name before everybody.
    """
    found = {(duty.round_id, duty.person_id): duty for duty in duties}
    keys = [(which, who) for which in (round, None) for who in (person, None)]
    return next((found[key] for key in keys if key in found), None)


def writing_duty(round: Round, user: int | None) -> Duty | None:
    """What the user with this id is asked to write in the round. One query."""
    return applying(WRITING.rows(task=round.task_id), round.pk, user)


def within(duty: Duty, path: str) -> Q:
    """Rows of the duty's round, or of its task. path: from a row to its round, such as `round`."""
    if duty.round_id:
        return Q(**{path: duty.round_id})
    return Q(**{f"{path}__task": duty.task_id})


def may_be_asked(task: Task, kind: str) -> list[User]:
    """The members whose role lets them do this, by address. One query."""
    members = task.members.colleagues().standing().filter(user__is_active=True)
    return [
        member.user
        for member in members.select_related("user__annotator").order_by("user__email")
        if MAY[Duty.Kind(kind)] in allowed(member.role, is_visible=task.is_visible)
    ]


def progress_words(duty: Duty, done: int) -> str:
    """How far its person is; of a share never how much is left, which would tell what is gold."""
    words = _("assignment: %(done)d of %(amount)d") if duty.amount else _("assignment: %(done)d")
    said = words % {"done": done, "amount": duty.amount}
    if duty.due_on is None:
        return said
    return _("%(assignment)s, until %(day)s") % {
        "assignment": said,
        "day": date_format(duty.due_on, "j M"),
    }
