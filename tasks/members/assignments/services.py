"""Writes about assignments: set, changed and ended by those who set a task up. Locks: the task."""

from collections.abc import Collection, Sequence
from datetime import date

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.people import public_name
from core.accounts.services import annotator_of, log
from core.errors import Invalid, Refused
from tasks.members.assignments.rules import too_much
from tasks.members.assignments.selectors import MAY, may_be_asked, standing_of
from tasks.models import Round, Task
from tasks.models.assignments import Duty
from tasks.permissions import can_edit
from tasks.roles import get_permissions

MOST = 500
"""Standing assignments of a task."""


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
    """Create the same assignment for each of these members, or one for everybody without `people`.

    Without amount and share, the people get equal parts of the unassigned share. All shares of a
    round have the same overlap, the latest one. Locks the task, so that shares set in parallel
    never exceed 1 together. Raises Refused, Invalid.
    """
    _lock(task, actor)
    # Each once, as a form may name a person twice.
    people = list(dict.fromkeys(people))
    if amount is None and share is None:
        share = _equal_share(task, kind, people, round)
    elif share is not None:
        _check_share(kind, people, amount)
    _check_people(task, kind, people, round)
    assignment_fields = {"amount": amount, "share": share, "overlap": overlap, "due_on": due_on}
    for person in people:
        annotator_of(person)  # places may be kept for who has not come yet
    about = {"task": task, "round": round, "kind": kind, "set_by": actor, "set_at": timezone.now()}
    whom: Sequence[User | None] = people or [None]
    assignments = [
        Duty.objects.create(person=person, **about, **assignment_fields) for person in whom
    ]
    _settle_shares(task, round, overlap if share else None)
    for assignment in assignments:
        _log(actor, "duty.set", assignment)
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
    _lock(assignment.task, actor)
    assignment = _get_standing(assignment)
    may_share = assignment.person is not None and assignment.kind == Duty.Kind.JUDGE
    if (amount is None) == (share is None) or (share is not None and not may_share):
        raise Invalid(_("Say a number, or a share for a person who is named."), field="amount")
    assignment.amount, assignment.share, assignment.overlap, assignment.due_on = (
        amount,
        share,
        overlap,
        due_on,
    )
    assignment.save(update_fields=["amount", "share", "overlap", "due_on"])
    _settle_shares(assignment.task, assignment.round, overlap if share else None)
    _log(actor, "duty.changed", assignment)


@transaction.atomic
def end_assignment(*, assignment: Duty, actor: User) -> None:
    """End the assignment; the work done is kept. One update, no lock. Raises Refused."""
    if not can_edit(actor, assignment.task):
        raise _not_theirs()
    # The condition is part of the update, so that ending twice is logged once.
    if Duty.objects.standing().filter(pk=assignment.pk).update(ended_at=timezone.now()):
        _log(actor, "duty.ended", assignment)


def end_without_role(*, task: Task, roles: dict[int, str | None]) -> None:
    """End the assignments that people's new roles do not allow. Their work is kept.

    roles: new roles by user id; None for a removed member. The caller holds the task's lock.
    """
    for user, role in roles.items():
        permissions = get_permissions(role, is_visible=task.is_visible) if role else frozenset()
        lost_kinds = []
        for kind, needed in MAY.items():
            if needed not in permissions:
                lost_kinds.append(kind)
        # Assignments that the new role still allows go on.
        standing_of(task).filter(person=user, kind__in=lost_kinds).update(ended_at=timezone.now())


def _lock(task: Task, actor: User) -> None:
    locked = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    if not can_edit(actor, locked):
        raise _not_theirs()


def _not_theirs() -> Refused:
    return Refused(_("You do not set this task up any more."), code="members")


def _get_standing(assignment: Duty) -> Duty:
    rows = (
        Duty.objects.standing().filter(pk=assignment.pk).select_related("task", "round", "person")
    )
    if (row := rows.first()) is None:
        raise Refused(_("This assignment was ended meanwhile. Set another one."), code="gone")
    return row


def _check_people(task: Task, kind: str, people: Collection[User], round: Round | None) -> None:
    allowed_people = may_be_asked(task, kind)
    if wrong := ", ".join(public_name(person) for person in people if person not in allowed_people):
        words = _("Their role does not let them: %(people)s. Change it first.")
        raise Invalid(words % {"people": wrong}, field="people")
    standing_assignments = standing_of(task).filter(kind=kind, round=round)
    # One for everybody and one for a person may stand together, but no two for the same.
    if standing_assignments.filter(person__in=people).exists() or (
        not people and standing_assignments.filter(person=None).exists()
    ):
        message = _("Such an assignment stands already. Change it, or end it first.")
        raise Invalid(message, field="people")
    if standing_of(task).count() + len(people) > MOST:
        message = _("A task has at most %(most)d assignments. End some first.")
        raise Refused(message % {"most": MOST}, code="cap")


def _check_share(kind: str, people: Collection[User], amount: int | None) -> None:
    if amount is not None:
        raise Invalid(_("Say a number or a share, not both."), field="share")
    if kind != Duty.Kind.JUDGE:
        raise Invalid(_("Say how many."), field="amount")
    if not people:
        raise Invalid(_("Shares are for people who are named."), field="share")


def _equal_share(
    task: Task, kind: str, people: Collection[User], round: Round | None
) -> float | None:
    """Return an equal part of the unassigned share for each person. Raises Invalid."""
    if kind != Duty.Kind.JUDGE or not people:
        raise Invalid(_("Say how many."), field="amount")
    # Compared with a small number and not with 0, since shares are rounded.
    free_share = 1 - sum(_list_sizes(_find_shares(task, round)))
    if free_share < 1e-6:
        raise Invalid(_("All is shared out. Lower or end a share first."), field="share")
    return free_share / len(people)


def _list_sizes(shares: QuerySet[Duty]) -> list[float]:
    return [assignment.share for assignment in shares if assignment.share]


def _find_shares(task: Task, round: Round | None) -> QuerySet[Duty]:
    return standing_of(task).filter(kind=Duty.Kind.JUDGE, round=round, share__isnull=False)


def _settle_shares(task: Task, round: Round | None, overlap: int | None) -> None:
    """Set the overlap of all shares of a round. Raises Invalid if the shares cannot be combined."""
    if overlap is None:
        return
    shares = _find_shares(task, round)
    # All shares of a round go around the same circle, so they have one overlap.
    shares.update(overlap=overlap)
    match too_much(_list_sizes(shares), overlap):
        case "sum":
            raise Invalid(_("All shares come to more than 100 %."), field="share")
        case "overlap":
            words = _(
                "Each example goes to %(overlap)d people, so nobody may have more than one part in "
                "%(overlap)d of what is shared. Name more people, or lower the overlap."
            )
            raise Invalid(words % {"overlap": overlap}, field="overlap")


def _log(actor: User, action: str, assignment: Duty) -> None:
    about = {}
    if assignment.person:
        about = {"user": assignment.person.email, "person": assignment.person_id}
    number = {}
    if assignment.round:
        number = {"round": assignment.round.number}
    log(
        actor, action, assignment.task,
        kind=assignment.kind, amount=assignment.amount, share=assignment.share,
        # The log is JSON, which has no dates.
        due_on=str(assignment.due_on or ""), **number, **about,
    )  # fmt: skip
