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
    """Return the task's duties that have not ended."""
    return Duty.objects.standing().filter(task=task)


def applying(duties: Iterable[Duty], round: int, person: int | None) -> Duty | None:
    """Return the duty that holds for a person in a round, of a task's open duties of one kind.

    What is set for a round goes before what is set for all, and a name before everybody.
    """
    duties_by_scope = {(duty.round_id, duty.person_id): duty for duty in duties}
    for scope in ((round, person), (round, None), (None, person), (None, None)):
        if scope in duties_by_scope:
            return duties_by_scope[scope]
    return None


def writing_duty(round: Round, user: int | None) -> Duty | None:
    """Return what the user with this id is asked to write in the round. One query."""
    return applying(WRITING.rows(task=round.task_id), round.pk, user)


def within(duty: Duty, path: str) -> Q:
    """Return the condition for rows of the duty's round, or of its task.

    `path` leads from a row to its round, such as `round`.
    """
    if duty.round_id:
        return Q(**{path: duty.round_id})
    return Q(**{f"{path}__task": duty.task_id})


def may_be_asked(task: Task, kind: str) -> list[User]:
    """Return the members whose role lets them do this, by address. One query."""
    members = task.members.colleagues().standing().filter(user__is_active=True)
    people = []
    for member in members.select_related("user__annotator").order_by("user__email"):
        if MAY[Duty.Kind(kind)] in allowed(member.role, is_visible=task.is_visible):
            people.append(member.user)
    return people


def progress_words(duty: Duty, done: int) -> str:
    """Describe how far its person is.

    For a share never say how much is left, which would reveal what is gold.
    """
    # Two whole messages, so that each can be translated.
    words = _("assignment: %(done)d of %(amount)d") if duty.amount else _("assignment: %(done)d")
    progress = words % {"done": done, "amount": duty.amount}
    if duty.due_on is None:
        return progress
    return _("%(assignment)s, until %(day)s") % {
        "assignment": progress,
        "day": date_format(duty.due_on, "j M"),
    }
