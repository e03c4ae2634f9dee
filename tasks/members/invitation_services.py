"""Create, mail, revoke and accept invitations to a task."""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import get_annotator, log
from core.accounts.tokens import hash_key
from core.data.rows import delete_in_batches
from core.errors import Invalid, Refused
from core.periodic import register_daily_tidying
from tasks.mails import build_invitation_text, mail_invitation, normalise_addresses
from tasks.members.ended_roles import notify_lost_read_access
from tasks.models import Invitation, Task, TaskMember
from tasks.permissions import OWNERS, check_member_limit, check_owner, get_role

MAX_OPEN_INVITATIONS = 500
"""The maximum number of open invitations per task."""
MAX_USES, MAX_DAYS = 1000, 90
RETENTION_PERIOD = timedelta(days=30)
"""The time for which an ended invitation, with its address, stays on the owners' page."""


@transaction.atomic
def send_invitations(
    *, task: Task, actor: User, role: str, addresses: Sequence[str], days: int
) -> list[Invitation]:
    """Mail each address its own link, which one person may accept within `days`.

    An earlier link to the same address is revoked. The actor does not learn whether the address has
    an account. Locks the task, because of the limit on open invitations. Returns the invitations.
    Raises Refused, Invalid.
    """
    addresses = normalise_addresses(addresses)
    check_member_limit(_lock_owned_task(task, actor, len(addresses)), len(addresses))
    member_emails = task.members.filter(user__email__in=addresses).values_list(
        "user__email", flat=True
    )
    if member_list := ", ".join(member_emails):
        message = _("Already members: %(addresses)s") % {"addresses": member_list}
        raise Invalid(message, field="addresses")
    now = timezone.now()
    # An earlier link ends, so that each address has one that works. One update on condition: a
    # link that is accepted at this moment is used or revoked, never both.
    find_open_invitations(task).filter(address__in=addresses).update(revoked_at=now)
    invitations = []
    for address in addresses:
        key = secrets.token_urlsafe(32)
        invitations.append(_create_invitation(task, key, role=role, days=days, address=address))
        log(actor, "invitation.made", task, user=address, role=role)
        mail_invitation(address, partial(_write_mail, invitations[-1], key, actor))
    return invitations


@transaction.atomic
def create_invitation_link(
    *, task: Task, actor: User, role: str, most: int, days: int
) -> tuple[Invitation, str]:
    """Create a link that up to `most` people may accept within `days`.

    Returns the invitation and its URL, which cannot be retrieved later. Owners are invited only by
    mail. Locks the task, because of the limit on open invitations. Raises Refused, Invalid.
    """
    # A link can be forwarded, so nobody becomes an owner by one that works for many.
    if role in OWNERS:
        raise Invalid(
            _("A shared link can't make people owners. Invite owners by email."), field="role"
        )
    if not 1 <= most <= MAX_USES:
        message = _("Choose a number from 1 to %(most)d.") % {"most": MAX_USES}
        raise Invalid(message, field="most")
    locked_task = _lock_owned_task(task, actor, 1)
    check_member_limit(locked_task, most)
    key = secrets.token_urlsafe(32)
    invitation = _create_invitation(task, key, role=role, days=days, most=most)
    log(actor, "invitation.made", task, role=role, most=most)
    return invitation, build_invitation_url(key)


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, actor: User) -> None:
    """Revoke an invitation with a single update. People who accepted it remain members. No lock.

    Raises Refused.
    """
    check_owner(actor, invitation.task)
    # Logged only if this call ended it: a second click changes nothing.
    if (
        find_open_invitations(invitation.task)
        .filter(pk=invitation.pk)
        .update(revoked_at=timezone.now())
    ):
        log_values = {}
        if invitation.address:
            log_values = {"user": invitation.address}
        log(actor, "invitation.revoked", invitation.task, role=invitation.role, **log_values)


def find_invitation(key: str) -> Invitation | None:
    """Return the open invitation with this key, or None."""
    # Only the digest is stored, so that who reads the database can accept no invitation.
    invitations = Invitation.objects.select_related("task").filter(digest=hash_key(key))
    return next((invitation for invitation in invitations if invitation.state == "open"), None)


@transaction.atomic
def accept_invitation(*, key: str, user: User) -> Task:
    """Make the person a member of the task; return the task.

    The role counts at once, because the person received the link. An existing member keeps their
    role and does not use up the invitation. Locks the invitation, so that it is not accepted more
    often than allowed. Raises Refused.
    """
    locked_invitations = Invitation.objects.select_for_update(of=("self",), no_key=True)
    # By hash, so that nobody can accept an invitation with what a copy of the table holds.
    invitation = locked_invitations.filter(digest=hash_key(key)).first()
    if invitation is None or invitation.state != "open":
        raise Refused(_("This invitation has expired. Ask for a new one."), code="gone", status=410)
    # A member who follows a link again uses nothing up.
    if get_role(user, invitation.task):
        return invitation.task
    # A member is listed by a pseudonym, which is drawn now if the person has none.
    get_annotator(user)
    member_values = {
        "role": invitation.role,
        "address": "",
        "invitation": invitation,
        "is_blind": False,
    }
    former_member = TaskMember.objects.filter(task=invitation.task, user=user).first()
    if former_member:  # a role that did not count while its address was not confirmed
        notify_lost_read_access(invitation.task, {user: (former_member.role, invitation.role)})
    TaskMember.objects.update_or_create(task=invitation.task, user=user, defaults=member_values)
    # Safe under the lock on the row.
    invitation.uses += 1
    invitation.save(update_fields=["uses"])
    log(
        user,
        "member.joined",
        invitation.task,
        user=user.email,
        person=user.pk,
        role=invitation.role,
    )
    return invitation.task


def find_open_invitations(task: Task) -> QuerySet[Invitation]:
    """Return the task's invitations that can still be accepted."""
    now = timezone.now()
    return task.invitations.filter(revoked_at=None, ends_at__gt=now, uses__lt=F("most"))


@register_daily_tidying(why="Invitations end.")
def tidy_invitations(max_rows: int) -> int:
    """Delete up to `max_rows` invitations that ended over a month ago; return how many.

    Their addresses are deleted with them.
    """
    cutoff = timezone.now() - RETENTION_PERIOD
    ended_condition = Q(ends_at__lt=cutoff) | Q(revoked_at__lt=cutoff)
    return delete_in_batches(Invitation.objects.filter(ended_condition), max_rows)


def build_invitation_url(key: str) -> str:
    """Return the URL at which the invitation with this key is accepted."""
    return settings.SITE_URL + reverse("join", args=[key])


def _lock_owned_task(task: Task, actor: User, new_count: int) -> Task:
    locked_task = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    check_owner(actor, locked_task)
    # Counted under the lock, so that two owners do not exceed it together.
    if find_open_invitations(locked_task).count() + new_count > MAX_OPEN_INVITATIONS:
        message = _("A task can have at most %(most)d open invitations. Revoke some first.")
        raise Refused(message % {"most": MAX_OPEN_INVITATIONS}, code="cap")
    return locked_task


def _create_invitation(task: Task, key: str, *, days: int, **values: object) -> Invitation:
    ends_at = timezone.now() + timedelta(days=days)
    return Invitation.objects.create(task=task, digest=hash_key(key), ends_at=ends_at, **values)


def _write_mail(invitation: Invitation, key: str, actor: User) -> tuple[str, str]:
    """Return the subject and the text of the mail with an invitation."""
    values = {"task": invitation.task.name, "role": _(TaskMember.Role(invitation.role).label)}
    values["person"] = str(get_annotator(actor))  # a stranger may read the mail: no address
    day = date_format(invitation.ends_at, "j F Y")
    return build_invitation_text(
        invitation.task.name,
        opening_sentence=_("%(person)s invites you to the task “%(task)s”. Your role: %(role)s.")
        % values,
        link=build_invitation_url(key),
        validity_sentence=_("This link is only for you. It works once, until %(day)s.")
        % {"day": day},
    )
