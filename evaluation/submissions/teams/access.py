"""Finding the team that an address names, for pages and the API."""

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from core.accounts.models import User
from core.accounts.people import person
from evaluation.models import Team, TeamMember
from evaluation.submissions.teams.selectors import find_membership


def find_team(request: HttpRequest | Request, pk: int) -> tuple[Team, TeamMember, User]:
    """Return a team, the user's membership, and the user. Raises Http404 for non-members."""
    user, team = person(request), get_object_or_404(Team, pk=pk)
    place = find_membership(user, team)
    if place is None:
        raise Http404
    return team, place, user
