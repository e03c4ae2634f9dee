"""Read teams, their members and invitations."""

from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from core.accounts.models import User
from evaluation.models import Team, TeamMember


def select_team_ids(user: User) -> QuerySet[Any]:
    """Return the ids of a person's teams, as a subquery."""
    return TeamMember.objects.filter(user=user).values("team")


def find_teams(user: User) -> QuerySet[Team]:
    """Return a person's teams, by name, with their members and invitations; two queries."""
    members = TeamMember.objects.select_related("user__annotator")
    teams = Team.objects.filter(pk__in=select_team_ids(user))
    return teams.prefetch_related(Prefetch("members", members))


def find_membership(user: User, team: Team) -> TeamMember | None:
    """Return a person's membership in a team; None if they are not a member."""
    return TeamMember.objects.filter(team=team, user=user).first()


def find_invitations(user: User) -> QuerySet[TeamMember]:
    """Return the open invitations to the person's confirmed email addresses.

    An unconfirmed address would let anybody accept invitations meant for its real owner. The
    account's own address counts, too, on sites that confirm no addresses.
    """
    confirmed_addresses = EmailAddress.objects.filter(
        user=user, email__iexact=OuterRef("address"), verified=True
    )
    is_invited = Q(Exists(confirmed_addresses))
    if settings.ACCOUNT_EMAIL_VERIFICATION == "none":
        is_invited |= Q(address__iexact=user.email)
    return TeamMember.objects.filter(is_invited, user=None).select_related("team")
