"""Queries about assignments."""

from collections.abc import Iterable

from django.db.models import Q, QuerySet
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.data.prepared import PreparedRead, Slot
from tasks.models import Round, Task
from tasks.models.assignments import Duty
from tasks.role_permissions import Permission, get_permissions

PERMISSION_BY_KIND = {Duty.Kind.WRITE: Permission.WRITE, Duty.Kind.JUDGE: Permission.JUDGE}


WRITING_ASSIGNMENTS = PreparedRead(
    lambda: Duty.objects.select_current().filter(task=Slot("task"), kind=Duty.Kind.WRITE)
)


def select_current_assignments(task: Task) -> QuerySet[Duty]:
    """Return the task's assignments that have not ended."""
    return Duty.objects.select_current().filter(task=task)


def find_applicable_assignment(
    assignments: Iterable[Duty], round_id: int, user_id: int | None
) -> Duty | None:
    """Return the assignment that applies to a person in a round, or None.

    assignments: the task's current assignments of one kind. An assignment for the round takes
    precedence over one for all rounds. Next, one for the person takes precedence over one for
    everybody. user_id: None for a visitor.
    """
    assignments_by_scope = {
        (assignment.round_id, assignment.person_id): assignment for assignment in assignments
    }
    # From the most to the least specific: the first one that exists applies.
    for scope in ((round_id, user_id), (round_id, None), (None, user_id), (None, None)):
        if scope in assignments_by_scope:
            return assignments_by_scope[scope]
    return None


def find_writing_assignment(round: Round, user_id: int | None) -> Duty | None:
    """Return the user's writing assignment for the round, or None. One query.

    user_id: None for a visitor.
    """
    return find_applicable_assignment(
        WRITING_ASSIGNMENTS.fetch_rows(task=round.task_id), round.pk, user_id
    )


def build_span_condition(assignment: Duty, path: str) -> Q:
    """Return the condition for rows of the assignment's round or, without a round, of its task.

    path: the lookup from a row to its round, such as `round`.
    """
    if assignment.round_id:
        return Q(**{path: assignment.round_id})
    return Q(**{f"{path}__task": assignment.task_id})


def list_assignable_people(task: Task, kind: str) -> list[User]:
    """Return the members whose role allows this kind of work, ordered by address. One query."""
    members = task.members.select_colleagues().select_effective().filter(user__is_active=True)
    people = []
    for member in members.select_related("user__annotator").order_by("user__email"):
        if PERMISSION_BY_KIND[Duty.Kind(kind)] in get_permissions(
            member.role, is_visible=task.is_visible
        ):
            people.append(member.user)
    return people


def describe_done_count(assignment: Duty, done_count: int) -> str:
    """Return a text about the person's progress, such as "assignment: 3 of 20".

    For a share it omits how much is left, which would reveal the gold items.
    """
    # Two whole messages, so that each can be translated.
    if assignment.amount:
        text = _("assignment: %(done)d of %(amount)d")
    else:
        # Translators: done: how many examples of an assignment are done
        text = _("assignment: %(done)d")
    progress = text % {"done": done_count, "amount": assignment.amount}
    if assignment.due_on is None:
        return progress
    # Translators: assignment: such as “assignment: 3 of 20”
    return _("%(assignment)s, due %(day)s") % {
        "assignment": progress,
        "day": date_format(assignment.due_on, "j M"),
    }
