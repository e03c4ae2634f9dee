"""Set, change and end assignments. Changes lock the task."""

from collections.abc import Collection, Sequence
from datetime import date

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.people import get_public_name
from core.accounts.services import get_annotator, log
from core.errors import Invalid, Refused
from tasks.members.assignments.rules import find_excess
from tasks.members.assignments.selectors import (
    PERMISSION_BY_KIND,
    list_assignable_people,
    select_current_assignments,
)
from tasks.models import Round, Task
from tasks.models.assignments import Duty
from tasks.permissions import can_edit
from tasks.role_permissions import get_permissions

MAX_ASSIGNMENTS = 500
"""The maximum number of current assignments of a task."""


@transaction.atomic
def set_assignments(
    *,
    task: Task,
    actor: User,
    kind: str,
    people: Sequence[User],
    round: Round | None = None,
    amount: int | None = None,
    share: float | None = None,
    overlap: int = 1,
    due_on: date | None = None,
) -> list[Duty]:
    """Create the same assignment for each of these members, and return the assignments.

    If `people` is empty, create one for everybody. Without amount and share, the people get equal
    parts of the unassigned share. All shares of a round get the same overlap, the latest one. Locks
    the task, so that shares set in parallel never exceed 1 together. Raises Refused, Invalid.
    """
    _lock_task(task, actor)
    # Each once, as a form may name a person twice.
    people = list(dict.fromkeys(people))
    if amount is None and share is None:
        share = _compute_equal_share(task, kind, people, round)
    elif share is not None:
        _check_share(kind, people, amount)
    _check_people(task, kind, people, round)
    assignment_fields = {"amount": amount, "share": share, "overlap": overlap, "due_on": due_on}
    for person in people:
        get_annotator(person)  # places may be kept for who has not come yet
    log_data = {
        "task": task,
        "round": round,
        "kind": kind,
        "set_by": actor,
        "set_at": timezone.now(),
    }
    recipients: Sequence[User | None] = people or [None]
    assignments = [
        Duty.objects.create(person=person, **log_data, **assignment_fields) for person in recipients
    ]
    _set_overlap(task, round, overlap if share else None)
    for assignment in assignments:
        _log_assignment(actor, "duty.set", assignment)
    return assignments


@transaction.atomic
def change_assignment(
    *,
    assignment: Duty,
    actor: User,
    amount: int | None,
    share: float | None,
    overlap: int,
    due_on: date | None,
) -> None:
    """Change an assignment's amount or share, overlap and last day. Locks the task.

    Raises Refused, Invalid.
    """
    # Shares are added up below, so that the lock must be there first.
    _lock_task(assignment.task, actor)
    assignment = _get_current_assignment(assignment)
    may_share = assignment.person is not None and assignment.kind == Duty.Kind.JUDGE
    if (amount is None) == (share is None) or (share is not None and not may_share):
        raise Invalid(
            _("Enter the number of examples per person. Shares are only for members who judge."),
            field="amount",
        )
    assignment.amount, assignment.share, assignment.overlap, assignment.due_on = (
        amount,
        share,
        overlap,
        due_on,
    )
    assignment.save(update_fields=["amount", "share", "overlap", "due_on"])
    _set_overlap(assignment.task, assignment.round, overlap if share else None)
    _log_assignment(actor, "duty.changed", assignment)


@transaction.atomic
def end_assignment(*, assignment: Duty, actor: User) -> None:
    """End the assignment, but keep the work done. Takes no lock. Raises Refused."""
    if not can_edit(actor, assignment.task):
        raise _build_lost_role_error()
    # The condition is part of the update, so that ending twice is logged once.
    if Duty.objects.select_current().filter(pk=assignment.pk).update(ended_at=timezone.now()):
        _log_assignment(actor, "duty.ended", assignment)


def end_disallowed_assignments(*, task: Task, roles: dict[int, str | None]) -> None:
    """End the assignments that people's new roles do not allow. Their work is kept.

    roles: new roles by user id; None for a removed member. The caller holds the task's lock.
    """
    for user, role in roles.items():
        permissions = get_permissions(role, is_visible=task.is_visible) if role else frozenset()
        lost_kinds = []
        for kind, needed_permission in PERMISSION_BY_KIND.items():
            if needed_permission not in permissions:
                lost_kinds.append(kind)
        # Assignments that the new role still allows go on.
        select_current_assignments(task).filter(person=user, kind__in=lost_kinds).update(
            ended_at=timezone.now()
        )


def _lock_task(task: Task, actor: User) -> None:
    locked_task = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    # Asked under the lock, as the actor's role may have ended since the page was shown.
    if not can_edit(actor, locked_task):
        raise _build_lost_role_error()


def _build_lost_role_error() -> Refused:
    return Refused(_("You can no longer edit this task."), code="members")


def _get_current_assignment(assignment: Duty) -> Duty:
    rows = (
        Duty.objects.select_current()
        .filter(pk=assignment.pk)
        .select_related("task", "round", "person")
    )
    if (row := rows.first()) is None:
        raise Refused(_("This assignment has ended. Create a new one."), code="gone")
    return row


def _check_people(task: Task, kind: str, people: Collection[User], round: Round | None) -> None:
    allowed_people = list_assignable_people(task, kind)
    if refused_names := ", ".join(
        get_public_name(person) for person in people if person not in allowed_people
    ):
        message = _("These members' roles don't allow this: %(people)s. Change their roles first.")
        raise Invalid(message % {"people": refused_names}, field="people")
    current_assignments = select_current_assignments(task).filter(kind=kind, round=round)
    # One for everybody and one for a person may stand together, but no two for the same.
    if current_assignments.filter(person__in=people).exists() or (
        not people and current_assignments.filter(person=None).exists()
    ):
        message = _("This assignment already exists. Change or end it first.")
        raise Invalid(message, field="people")
    if select_current_assignments(task).count() + len(people) > MAX_ASSIGNMENTS:
        message = _("A task can have at most %(most)d assignments. End some first.")
        raise Refused(message % {"most": MAX_ASSIGNMENTS}, code="cap")


def _check_share(kind: str, people: Collection[User], amount: int | None) -> None:
    if amount is not None:
        raise Invalid(_("Enter a number or a share, not both."), field="share")
    if kind != Duty.Kind.JUDGE:
        raise Invalid(_("Enter the number of examples per person."), field="amount")
    if not people:
        raise Invalid(
            _("Choose members to give them a share, or enter a number instead."), field="share"
        )


def _compute_equal_share(
    task: Task, kind: str, people: Collection[User], round: Round | None
) -> float | None:
    """Return each person's equal part of the unassigned share. Raises Invalid if there is none."""
    if kind != Duty.Kind.JUDGE or not people:
        raise Invalid(_("Enter the number of examples per person."), field="amount")
    # Compared with a small number and not with 0, since shares are rounded.
    free_share = 1 - sum(_list_share_sizes(_find_shares(task, round)))
    if free_share < 1e-6:
        raise Invalid(_("All work is already assigned. Lower or end a share first."), field="share")
    return free_share / len(people)


def _list_share_sizes(shares: QuerySet[Duty]) -> list[float]:
    return [assignment.share for assignment in shares if assignment.share]


def _find_shares(task: Task, round: Round | None) -> QuerySet[Duty]:
    return select_current_assignments(task).filter(
        kind=Duty.Kind.JUDGE, round=round, share__isnull=False
    )


def _set_overlap(task: Task, round: Round | None, overlap: int | None) -> None:
    """Set the overlap of all shares of a round. Raises Invalid if the shares cannot be combined.

    overlap: None to change nothing.
    """
    if overlap is None:
        return
    shares = _find_shares(task, round)
    # All shares of a round go around the same circle, so they have one overlap.
    shares.update(overlap=overlap)
    match find_excess(_list_share_sizes(shares), overlap):
        case "sum":
            raise Invalid(
                _("The shares add up to more than 100 %. Lower one of them."), field="share"
            )
        case "overlap":
            message = _(
                "Each example goes to %(overlap)d people, so a share can be at most 1 "
                "in %(overlap)d. Choose more people, or lower “Judges per example”."
            )
            raise Invalid(message % {"overlap": overlap}, field="overlap")


def _log_assignment(actor: User, action: str, assignment: Duty) -> None:
    person_data = {}
    if assignment.person:
        person_data = {"user": assignment.person.email, "person": assignment.person_id}
    round_data = {}
    if assignment.round:
        round_data = {"round": assignment.round.number}
    log(
        actor, action, assignment.task,
        kind=assignment.kind, amount=assignment.amount, share=assignment.share,
        # The log is JSON, which has no dates.
        due_on=str(assignment.due_on or ""), **round_data, **person_data,
    )  # fmt: skip
