"""Writes of teams. Each change of members locks the team, so that owners do not collide."""

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import annotator_of, log
from core.errors import Invalid, Refused
from core.mail.addresses import is_address
from core.text.taken_names import check_free, checked_name, lock_names
from evaluation.models import Submission, Team, TeamMember
from evaluation.submissions.teams.selectors import find_invitations, find_membership
from tasks.mails import addresses_to_invite

MOST_MEMBERS = 50
"""Of a team, invitations among them."""


def make_team(*, actor: User, name: str) -> Team:
    """Create a team owned by the actor. Locks the names of teams. Raises Invalid."""
    name = checked_name(name)
    if len(name) > 60:
        raise Invalid(_("Enter a name of at most 60 characters."), field="name")
    annotator_of(actor)  # the name that members see
    try:
        with transaction.atomic():
            lock_names("teams")
            check_free(name, Team.objects.values_list("name", flat=True))
            team = Team.objects.create(name=name)
            now = timezone.now()
            TeamMember.objects.create(
                team=team, user=actor, address=actor.email.lower(), is_owner=True, joined_at=now
            )
            log(actor, "team.made", team)
    except IntegrityError:
        raise Invalid(_("There is a team of this name. Choose another."), field="name") from None
    return team


@transaction.atomic
def invite_member(*, team: Team, actor: User, email: str) -> TeamMember:
    """Invite an email address to a team; its owner accepts on their own page. Locks the team.

    Does not reveal whether the address has an account. Raises Refused, Invalid.
    """
    _lock_owned(team, actor)
    [address] = addresses_to_invite([email])
    if not is_address(address):
        raise Invalid(_("Enter an e-mail address."), field="email")
    # A member may have joined by another address than that of the account.
    if team.members.filter(Q(address=address) | Q(user__email__iexact=address)).exists():
        raise Invalid(_("This address is invited already."), field="email")
    if team.members.count() >= MOST_MEMBERS:
        raise Refused(_("A team has at most %(most)d members.") % {"most": MOST_MEMBERS})
    member = TeamMember.objects.create(team=team, address=address)
    log(actor, "team.invited", team, user=address)
    return member


@transaction.atomic
def accept_invitation(*, invitation: TeamMember, user: User) -> None:
    """Accept an invitation from `find_invitations`. Locks the team.

    Raises Refused if the invitation was withdrawn.
    """
    team = _lock(invitation.team)
    annotator_of(user)
    if find_membership(user, team):  # invited at a second address
        team.members.filter(pk=invitation.pk, user=None).delete()
        return
    # Under the lock: an owner may have taken the invitation back since the page was made.
    still_open = team.members.filter(pk=invitation.pk, user=None)
    if not still_open.update(user=user, joined_at=timezone.now()):
        raise Refused(_("This invitation was taken back."), code="gone")
    log(user, "team.joined", team, user=user.email, person=user.pk)


@transaction.atomic
def decline_invitation(*, invitation: TeamMember, user: User) -> None:
    """Decline an invitation. Locks the team."""
    team = _lock(invitation.team)
    team.members.filter(pk=invitation.pk, user=None).delete()
    log(user, "team.declined", team)
    _delete_if_empty(team)


@transaction.atomic
def remove_member(*, team: Team, actor: User, member: TeamMember) -> None:
    """Remove a member or an invitation. Team owners only. Locks the team. Raises Refused."""
    _lock_owned(team, actor)
    team.members.filter(pk=member.pk).delete()
    _check_owned(team)
    about = {}
    if member.user_id:
        about = {"user": member.address, "person": member.user_id}
    log(actor, "team.removed", team, **about)


@transaction.atomic
def set_owner(*, team: Team, actor: User, member: TeamMember, is_owner: bool) -> None:
    """Grant or revoke a member's ownership. Locks the team. Raises Refused."""
    _lock_owned(team, actor)
    if not team.members.filter(pk=member.pk, user__isnull=False).update(is_owner=is_owner):
        raise Refused(_("Only who has joined can be an owner."), code="members")
    _check_owned(team)
    log(actor, "team.owner", team, user=member.address, person=member.user_id, is_owner=is_owner)


@transaction.atomic
def leave_team(*, team: Team, user: User) -> None:
    """Leave a team. Models submitted for the team stay with it. Locks the team. Raises Refused."""
    _lock(team)
    team.members.filter(user=user).delete()
    _check_owned(team)
    log(user, "team.left", team, user=user.email, person=user.pk)
    _delete_if_empty(team)


def leave_all_teams(*, user: User) -> None:
    """Remove the user from every team when their account is deleted, one transaction per team.

    If a team has no other owner, its longest-standing member becomes owner. Never raises Refused.
    Locks the team.
    """
    for place in TeamMember.objects.filter(user=user).select_related("team"):
        with transaction.atomic():
            team = _lock(place.team)
            place.delete()
            _assign_missing_owner(team)
            _delete_if_empty(team)
    find_invitations(user).delete()


def assign_missing_owners() -> None:
    """Give a new owner to teams whose owner's account an administrator deleted. Locks each team."""
    owned = TeamMember.objects.filter(is_owner=True).values("team")
    for team in Team.objects.exclude(pk__in=owned):
        with transaction.atomic():
            _assign_missing_owner(_lock(team))
            _delete_if_empty(team)


def _assign_missing_owner(team: Team) -> None:
    """Make the longest-standing member an owner if the team has no owner."""
    joined_members = team.members.filter(user__isnull=False)
    if not joined_members.filter(is_owner=True).exists() and (
        first_member := joined_members.order_by("joined_at").first()
    ):
        first_member.is_owner = True
        first_member.save(update_fields=["is_owner"])


def _delete_if_empty(team: Team) -> None:
    """Delete a team without members, unless models still belong to it."""
    if team.members.filter(user__isnull=False).exists():
        return
    team.members.all().delete()
    if not Submission.objects.filter(team=team, withdrawn_at=None).exists():
        team.delete()


def _lock(team: Team) -> Team:
    """Lock the team and return it. Raises Refused if it was deleted."""
    # Without its key: rows that only refer to the team, such as submissions, need not wait.
    locked_team = (
        Team.objects.select_for_update(of=("self",), no_key=True).filter(pk=team.pk).first()
    )
    if locked_team is None:
        raise Refused(_("This team is gone."), code="gone")
    return locked_team


def _lock_owned(team: Team, actor: User) -> None:
    """Lock the team. Raises Refused if the actor is not an owner any more."""
    _lock(team)
    if not team.members.filter(user=actor, is_owner=True).exists():
        raise Refused(_("You do not own this team any more."), code="members")


def _check_owned(team: Team) -> None:
    """Raise Refused if the team has members but no owner."""
    joined = team.members.filter(user__isnull=False)
    if joined.exists() and not joined.filter(is_owner=True).exists():
        raise Refused(_("A team needs an owner. Name another one first."), code="members")
