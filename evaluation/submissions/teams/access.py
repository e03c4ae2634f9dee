"""Find the team that a URL names, for pages and the API."""

from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from core.accounts.models import User
from core.accounts.people import get_person
from evaluation.models import Team, TeamMember
from evaluation.submissions.teams.selectors import find_membership


def find_team(request: HttpRequest | Request, pk: int) -> tuple[Team, TeamMember, User]:
    """Return a team, the user's membership, and the user. Raises Http404 for non-members."""
    user, team = get_person(request), get_object_or_404(Team, pk=pk)
    membership = find_membership(user, team)
    if membership is None:
        raise Http404
    return team, membership, user
