"""Write teams. Each change of members locks the team, so that owners' changes do not collide."""

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import get_annotator, log
from core.errors import Invalid, Refused
from core.mail.addresses import is_mail_address
from core.text.taken_names import check_name, check_name_is_free, lock_names
from evaluation.models import Submission, Team, TeamMember
from evaluation.submissions.teams.selectors import find_invitations, find_membership
from tasks.mails import normalise_addresses

MAX_MEMBERS = 50
"""The maximum number of members of a team, including invitations."""


def make_team(*, actor: User, name: str) -> Team:
    """Create a team owned by the actor. Locks the names of teams. Raises Invalid."""
    name = check_name(name)
    if len(name) > 60:
        raise Invalid(_("Enter a name with at most 60 characters."), field="name")
    get_annotator(actor)  # the name shown to members
    try:
        with transaction.atomic():
            lock_names("teams")
            check_name_is_free(name, Team.objects.values_list("name", flat=True))
            team = Team.objects.create(name=name)
            now = timezone.now()
            TeamMember.objects.create(
                team=team, user=actor, address=actor.email.lower(), is_owner=True, joined_at=now
            )
            log(actor, "team.made", team)
    except IntegrityError:
        raise Invalid(_("This team name is already taken. Choose another."), field="name") from None
    return team


@transaction.atomic
def invite_member(*, team: Team, actor: User, email: str) -> TeamMember:
    """Invite an email address to a team; its owner accepts on their own page. Locks the team.

    Does not reveal whether the address has an account. Raises Refused, Invalid.
    """
    _lock_team_of_owner(team, actor)
    [address] = normalise_addresses([email])
    if not is_mail_address(address):
        raise Invalid(_("Enter an email address like name@example.com."), field="email")
    # A member may have joined by a different address from the account's.
    if team.members.filter(Q(address=address) | Q(user__email__iexact=address)).exists():
        raise Invalid(_("You've already invited this address."), field="email")
    if team.members.count() >= MAX_MEMBERS:
        raise Refused(
            _("A team can have at most %(most)d members. Remove someone first.")
            % {"most": MAX_MEMBERS}
        )
    member = TeamMember.objects.create(team=team, address=address)
    log(actor, "team.invited", team, user=address)
    return member


@transaction.atomic
def accept_invitation(*, invitation: TeamMember, user: User) -> None:
    """Accept an invitation from `find_invitations`. Locks the team.

    If the user is a member already, the invitation is only deleted. Raises Refused if the
    invitation was withdrawn.
    """
    team = _lock_team(invitation.team)
    get_annotator(user)
    if find_membership(user, team):  # invited at a second address
        team.members.filter(pk=invitation.pk, user=None).delete()
        return
    # Under the lock, because an owner may have revoked the invitation meanwhile.
    open_invitations = team.members.filter(pk=invitation.pk, user=None)
    if not open_invitations.update(user=user, joined_at=timezone.now()):
        raise Refused(_("This invitation was withdrawn."), code="gone")
    log(user, "team.joined", team, user=user.email, person=user.pk)


@transaction.atomic
def decline_invitation(*, invitation: TeamMember, user: User) -> None:
    """Decline an invitation. Locks the team. Raises Refused if the team was deleted."""
    team = _lock_team(invitation.team)
    team.members.filter(pk=invitation.pk, user=None).delete()
    log(user, "team.declined", team)
    _delete_if_empty(team)


@transaction.atomic
def remove_member(*, team: Team, actor: User, member: TeamMember) -> None:
    """Remove a member or an invitation. Team owners only. Locks the team. Raises Refused."""
    _lock_team_of_owner(team, actor)
    team.members.filter(pk=member.pk).delete()
    _check_has_owner(team)
    log_data = {}
    if member.user_id:
        log_data = {"user": member.address, "person": member.user_id}
    log(actor, "team.removed", team, **log_data)


@transaction.atomic
def set_owner(*, team: Team, actor: User, member: TeamMember, is_owner: bool) -> None:
    """Grant or revoke a member's ownership. Locks the team. Raises Refused."""
    _lock_team_of_owner(team, actor)
    if not team.members.filter(pk=member.pk, user__isnull=False).update(is_owner=is_owner):
        raise Refused(
            _(
                "This person hasn't joined the team yet. Make them an owner once they "
                "accept the invitation."
            ),
            code="members",
        )
    _check_has_owner(team)
    log(actor, "team.owner", team, user=member.address, person=member.user_id, is_owner=is_owner)


@transaction.atomic
def leave_team(*, team: Team, user: User) -> None:
    """Leave a team. Models submitted for the team stay with it. Locks the team. Raises Refused.

    A team without members is deleted, unless models belong to it.
    """
    _lock_team(team)
    team.members.filter(user=user).delete()
    _check_has_owner(team)
    log(user, "team.left", team, user=user.email, person=user.pk)
    _delete_if_empty(team)


def leave_all_teams(*, user: User) -> None:
    """Remove the user from every team when their account is deleted, one transaction per team.

    If a team has no other owner, its longest-standing member becomes owner. Locks each team.
    """
    for membership in TeamMember.objects.filter(user=user).select_related("team"):
        with transaction.atomic():
            team = _lock_team(membership.team)
            membership.delete()
            _assign_missing_owner(team)
            _delete_if_empty(team)
    find_invitations(user).delete()


def assign_missing_owners() -> None:
    """Give a new owner to teams whose owner's account an administrator deleted. Locks each team."""
    owned = TeamMember.objects.filter(is_owner=True).values("team")
    for team in Team.objects.exclude(pk__in=owned):
        with transaction.atomic():
            _assign_missing_owner(_lock_team(team))
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


def _lock_team(team: Team) -> Team:
    """Lock the team and return it. Raises Refused if it was deleted."""
    # Without its key: rows that only refer to the team, such as submissions, need not wait.
    locked_team = (
        Team.objects.select_for_update(of=("self",), no_key=True).filter(pk=team.pk).first()
    )
    if locked_team is None:
        raise Refused(_("This team no longer exists."), code="gone")
    return locked_team


def _lock_team_of_owner(team: Team, actor: User) -> None:
    """Lock the team. Raises Refused if the actor is not an owner any more."""
    _lock_team(team)
    if not team.members.filter(user=actor, is_owner=True).exists():
        raise Refused(_("You no longer own this team."), code="members")


def _check_has_owner(team: Team) -> None:
    """Raise Refused if the team has members but no owner."""
    joined_members = team.members.filter(user__isnull=False)
    if joined_members.exists() and not joined_members.filter(is_owner=True).exists():
        raise Refused(_("A team needs an owner. Appoint another one first."), code="members")
