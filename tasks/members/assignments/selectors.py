"""Reads about assignments."""

from collections.abc import Iterable

from django.db.models import Q, QuerySet
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.data.prepared import PreparedRead, Slot
from tasks.models import Round, Task
from tasks.models.assignments import Duty
from tasks.roles import May, get_permissions

MAY = {Duty.Kind.WRITE: May.WRITE, Duty.Kind.JUDGE: May.JUDGE}


WRITING = PreparedRead(
    lambda: Duty.objects.standing().filter(task=Slot("task"), kind=Duty.Kind.WRITE)
)


def standing_of(task: Task) -> QuerySet[Duty]:
    """Return the task's assignments that have not ended."""
    return Duty.objects.standing().filter(task=task)


def applying(assignments: Iterable[Duty], round: int, person: int | None) -> Duty | None:
    """Return the assignment that applies to a person in a round, or None.

    assignments: the task's current assignments of one kind. One for the round precedes one for all
    rounds, and one for the person precedes one for everybody.
    """
    assignments_by_scope = {
        (assignment.round_id, assignment.person_id): assignment for assignment in assignments
    }
    for scope in ((round, person), (round, None), (None, person), (None, None)):
        if scope in assignments_by_scope:
            return assignments_by_scope[scope]
    return None


def writing_assignment(round: Round, user: int | None) -> Duty | None:
    """Return the user's writing assignment for the round, or None. One query.

    user: the user's id; None for a visitor.
    """
    return applying(WRITING.rows(task=round.task_id), round.pk, user)


def within(assignment: Duty, path: str) -> Q:
    """Return the condition for rows of the assignment's round, or else of its task.

    path: the lookup from a row to its round, such as `round`.
    """
    if assignment.round_id:
        return Q(**{path: assignment.round_id})
    return Q(**{f"{path}__task": assignment.task_id})


def may_be_asked(task: Task, kind: str) -> list[User]:
    """Return the members whose role allows this kind of work, ordered by address. One query."""
    members = task.members.colleagues().standing().filter(user__is_active=True)
    people = []
    for member in members.select_related("user__annotator").order_by("user__email"):
        if MAY[Duty.Kind(kind)] in get_permissions(member.role, is_visible=task.is_visible):
            people.append(member.user)
    return people


def progress_words(assignment: Duty, done_count: int) -> str:
    """Return a description of the person's progress.

    For a share it omits how much is left, which would reveal the gold items.
    """
    # Two whole messages, so that each can be translated.
    if assignment.amount:
        words = _("assignment: %(done)d of %(amount)d")
    else:
        # Translators: done: how many examples of an assignment are done
        words = _("assignment: %(done)d")
    progress = words % {"done": done_count, "amount": assignment.amount}
    if assignment.due_on is None:
        return progress
    # Translators: assignment: such as “assignment: 3 of 20”
    return _("%(assignment)s, until %(day)s") % {
        "assignment": progress,
        "day": date_format(assignment.due_on, "j M"),
    }
