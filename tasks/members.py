"""Writes about a task's members and their roles."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from dynabench.accounts.models import User
from dynabench.accounts.services import log
from dynabench.lib.errors import Invalid, Refused
from tasks.models import Task, TaskMember
from tasks.permissions import Person, can_own


def account_of(email: str) -> User:
    """The account with this address. Raises Refused."""
    user = User.objects.filter(email__iexact=email, is_active=True).first()
    if user is None:
        raise Invalid(_("Nobody has this address here. Ask them to sign up."), field="email")
    return user


def check_members(members: Sequence[TaskMember], person: Person) -> None:
    """Whether a task may have exactly these members. Raises Refused."""
    if len({member.user_id for member in members}) < len(members):
        raise Refused(_("A person is there twice. Give them one role."), code="members")
    if not person.is_superuser and TaskMember.Role.OWNER not in {one.role for one in members}:
        raise Refused(_("A task needs an owner. Name another one first."), code="members")


@transaction.atomic
def change_members(
    *,
    task: Task,
    actor: User,
    added: Sequence[TaskMember] = (),
    changed: Sequence[TaskMember] = (),
    removed: Sequence[TaskMember] = (),
) -> None:
    """Store new members, others' new roles, and take members out, all or nothing.

    A new role counts once its person has confirmed the address that it is given to. Locks the
    task, so that two owners cannot remove each other. Raises Refused.
    """
    Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    if not can_own(actor, task):
        raise Refused(_("You do not own this task any more."), code="members")
    there = {member.pk: member for member in task.members.all()}
    if not there.keys() >= {member.pk for member in (*changed, *removed)}:
        raise Refused(
            _("Somebody removed a member meanwhile. Look at the members again."), code="members"
        )
    kept = there | {member.pk: member for member in changed}
    for member in removed:
        del kept[member.pk]
    check_members([*kept.values(), *added], actor)
    task.members.filter(pk__in=[member.pk for member in removed]).delete()
    TaskMember.objects.bulk_update(changed, ["role"])
    for member in added:
        member.address = member.user.email
    TaskMember.objects.bulk_create(added)
    owners = task.members.standing().filter(role=TaskMember.Role.OWNER)
    if not (actor.is_superuser or owners.exists()):
        raise Refused(_("A task needs an owner whose address is confirmed."), code="members")
    for action, members in {"added": added, "changed": changed, "removed": removed}.items():
        for member in members:
            about = {"user": member.user.email, "person": member.user_id, "role": member.role}
            log(actor, f"member.{action}", task, **about)
