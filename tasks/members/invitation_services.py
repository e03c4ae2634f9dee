"""Writes about invitations: made by a task's owners, accepted by whoever has the link."""

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
from core.accounts.services import annotator_of, log
from core.accounts.tokens import digest_of
from core.data.rows import delete_some
from core.errors import Invalid, Refused
from core.periodic import tidied_daily
from tasks.mails import addresses_to_invite, invitation_text, mail_invitation
from tasks.members.ended_roles import note_ended_readers
from tasks.models import Invitation, Task, TaskMember
from tasks.permissions import OWNERS, check_colleagues, check_owner, role_of

MAX_OPEN = 500
"""Invitations of a task that are open at a time."""
MAX_USES, MAX_DAYS = 1000, 90
KEEP_PERIOD = timedelta(days=30)
"""So long an invitation stays on the owners' page after its end, with the address in it."""


@transaction.atomic
def send_invitations(
    *, task: Task, actor: User, role: str, addresses: Sequence[str], days: int
) -> list[Invitation]:
    """Mail each address its own link, which one person may accept within `days`.

    An earlier link to the same address is revoked. The actor does not learn whether the address has
    an account. Locks the task, for the limit on open invitations. Raises Refused, Invalid.
    """
    addresses = addresses_to_invite(addresses)
    check_colleagues(_lock_owned(task, actor, len(addresses)), len(addresses))
    there = task.members.filter(user__email__in=addresses).values_list("user__email", flat=True)
    if members := ", ".join(there):
        message = _("They are members already: %(addresses)s") % {"addresses": members}
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
def create_link(
    *, task: Task, actor: User, role: str, most: int, days: int
) -> tuple[Invitation, str]:
    """Create a link that up to `most` people may accept within `days`; return it with its URL.

    The URL cannot be retrieved later. Owners are invited only by mail. Locks the task, for the
    limit on open invitations. Raises Refused, Invalid.
    """
    # A link can be forwarded, so nobody becomes an owner by one that works for many.
    if role in OWNERS:
        raise Invalid(
            _("A link for many makes nobody an owner. Invite owners by mail."), field="role"
        )
    if not 1 <= most <= MAX_USES:
        message = _("Choose a number from 1 to %(most)d.") % {"most": MAX_USES}
        raise Invalid(message, field="most")
    locked = _lock_owned(task, actor, 1)
    check_colleagues(locked, most)
    key = secrets.token_urlsafe(32)
    invitation = _create_invitation(task, key, role=role, days=days, most=most)
    log(actor, "invitation.made", task, role=role, most=most)
    return invitation, build_url(key)


@transaction.atomic
def revoke_invitation(*, invitation: Invitation, actor: User) -> None:
    """Revoke an invitation. People who accepted it remain members. One update, no lock.

    Raises Refused.
    """
    check_owner(actor, invitation.task)
    # Logged only if this call ended it: a second click changes nothing.
    if (
        find_open_invitations(invitation.task)
        .filter(pk=invitation.pk)
        .update(revoked_at=timezone.now())
    ):
        about = {}
        if invitation.address:
            about = {"user": invitation.address}
        log(actor, "invitation.revoked", invitation.task, role=invitation.role, **about)


def find_invitation(key: str) -> Invitation | None:
    """Return the open invitation with this key, or None."""
    # Only the digest is stored, so that who reads the database can accept no invitation.
    invitations = Invitation.objects.select_related("task").filter(digest=digest_of(key))
    return next((invitation for invitation in invitations if invitation.state == "open"), None)


@transaction.atomic
def accept_invitation(*, key: str, user: User) -> Task:
    """Make the person a member. The role counts at once, because they received the link.

    An existing member keeps their role and does not use up the invitation. Locks the invitation, so
    that it is not accepted more often than allowed. Raises Refused.
    """
    locked = Invitation.objects.select_for_update(of=("self",), no_key=True)
    invitation = locked.filter(digest=digest_of(key)).first()
    if invitation is None or invitation.state != "open":
        raise Refused(_("This invitation is over. Ask for another one."), code="gone", status=410)
    # A member who follows a link again uses nothing up.
    if role_of(user, invitation.task):
        return invitation.task
    # A member is listed by a pseudonym, which is drawn now if the person has none.
    annotator_of(user)
    role = {"role": invitation.role, "address": "", "invitation": invitation, "is_blind": False}
    former = TaskMember.objects.filter(task=invitation.task, user=user).first()
    if former:  # a role that did not count while its address was not confirmed
        note_ended_readers(invitation.task, {user: (former.role, invitation.role)})
    TaskMember.objects.update_or_create(task=invitation.task, user=user, defaults=role)
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


@tidied_daily(why="Invitations end.")
def tidy_invitations(most: int) -> int:
    """Delete up to `most` invitations that ended over a month ago; return how many.

    Their addresses are deleted with them.
    """
    before = timezone.now() - KEEP_PERIOD
    over = Q(ends_at__lt=before) | Q(revoked_at__lt=before)
    return delete_some(Invitation.objects.filter(over), most)


def build_url(key: str) -> str:
    """Return the URL at which the invitation with this key is accepted."""
    return settings.SITE_URL + reverse("join", args=[key])


def _lock_owned(task: Task, actor: User, new_count: int) -> Task:
    locked_task = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    check_owner(actor, locked_task)
    # Counted under the lock, so that two owners do not exceed it together.
    if find_open_invitations(locked_task).count() + new_count > MAX_OPEN:
        words = _("A task has at most %(most)d open invitations. Revoke some first.")
        raise Refused(words % {"most": MAX_OPEN}, code="cap")
    return locked_task


def _create_invitation(task: Task, key: str, *, days: int, **values: object) -> Invitation:
    ends_at = timezone.now() + timedelta(days=days)
    return Invitation.objects.create(task=task, digest=digest_of(key), ends_at=ends_at, **values)


def _write_mail(invitation: Invitation, key: str, actor: User) -> tuple[str, str]:
    """Return the subject and the text of the mail."""
    task = {"task": invitation.task.name, "role": _(TaskMember.Role(invitation.role).label)}
    task["person"] = str(annotator_of(actor))  # a stranger may read the mail: no address
    day = date_format(invitation.ends_at, "j F Y")
    return invitation_text(
        invitation.task.name,
        opening=_("%(person)s invites you to the task “%(task)s”. Your role: %(role)s.") % task,
        link=build_url(key),
        validity=_("The link is yours alone. It works once, until %(day)s.") % {"day": day},
    )
