"""API views of teams that submit models."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.accounts.people import get_person, get_public_name
from core.mail.addresses import AddressSerializerField
from core.web.api import read
from core.web.form_fields import build_request_field
from evaluation.api.models import ModelList
from evaluation.models import Submission, Team, TeamMember
from evaluation.submissions.selectors import find_team_submissions
from evaluation.submissions.teams import services
from evaluation.submissions.teams.access import find_team
from evaluation.submissions.teams.forms import TeamForm
from evaluation.submissions.teams.selectors import find_invitations, find_teams
from evaluation.submissions.visibility import Viewer

ID_PARAMETER = OpenApiParameter("id", OpenApiTypes.INT, "path", description="The team's.")


class TeamMemberSerializer(serializers.Serializer[TeamMember]):
    """A member of a team, or an invited address."""

    id = serializers.IntegerField()
    name = serializers.SerializerMethodField(help_text="A pseudonym; empty: invited.")
    email = serializers.SerializerMethodField(help_text="null: you do not own the team.")
    is_owner = serializers.BooleanField()
    joined_at = serializers.DateTimeField(allow_null=True, help_text="null: invited.")

    def get_name(self, member: TeamMember) -> str:
        """Return the person's name as leaderboards show it."""
        return get_public_name(member.user)

    def get_email(self, member: TeamMember) -> str | None:
        """Return the invited address, for the team's owners and the invited person.

        None for others.
        """
        reader: User = self.context["reader"]
        if member.user_id == reader.pk:
            return member.address
        for colleague in member.team.members.all():  # loaded with the teams
            if colleague.is_owner and colleague.user_id == reader.pk:
                return member.address
        return None


class TeamSerializer(serializers.ModelSerializer[Team]):
    """A team as its members see it."""

    members = TeamMemberSerializer(many=True)

    class Meta:
        model = Team
        fields = ("id", "name", "made_at", "members")


class NewTeamSerializer(serializers.Serializer[Any]):
    """A new team."""

    name = build_request_field(TeamForm, "name", help_text="Leaderboards show it.")


class TeamInviteeSerializer(serializers.Serializer[Any]):
    """The address to invite."""

    email = AddressSerializerField(help_text="They accept it with this address confirmed.")


class TeamOwnershipSerializer(serializers.Serializer[Any]):
    """Whether a member owns the team."""

    is_owner = serializers.BooleanField()


class TeamInvitationSerializer(serializers.ModelSerializer[TeamMember]):
    """An invitation that you received."""

    team = serializers.CharField(source="team.name")

    class Meta:
        model = TeamMember
        fields = ("id", "team")


class _TeamBaseView(APIView):
    write_scope = ApiToken.Scope.SUBMIT
    throttle = "submit"


@extend_schema_view(get=extend_schema(operation_id="teams_list"))
class Teams(_TeamBaseView, generics.ListAPIView[Team]):
    """List your teams with their members."""

    serializer_class = TeamSerializer
    queryset = Team.objects.none()

    def get_queryset(self) -> QuerySet[Team]:
        return find_teams(get_person(self.request))

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "reader": self.request.user}

    @write("teams_create", NewTeamSerializer, {201: TeamSerializer})
    def post(self, request: Request) -> Response:
        """Create a team, which you then own."""
        user = get_person(request)
        team = services.make_team(actor=user, **read(NewTeamSerializer, request))
        return Response(_describe_team(user, team), status.HTTP_201_CREATED)


def _describe_team(user: User, team: Team) -> Any:
    return TeamSerializer(find_teams(user).get(pk=team.pk), context={"reader": user}).data


class TeamView(_TeamBaseView):
    @extend_schema(operation_id="teams_get", responses=TeamSerializer, parameters=[ID_PARAMETER])
    def get(self, request: Request, pk: int) -> Response:
        """Get one of your teams."""
        team, _, user = find_team(request, pk)
        return Response(_describe_team(user, team))


class LeaveTeamView(_TeamBaseView):
    @write("teams_leave", None, {204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Leave a team. The last owner cannot leave.

        Models that you submitted for the team remain the team's.
        """
        team, _, user = find_team(request, pk)
        services.leave_team(team=team, user=user)
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(get=extend_schema(operation_id="team_models_list", parameters=[ID_PARAMETER]))
class TeamModels(ModelList):
    """List a team's models of tasks that you can see, newest first."""

    def get_queryset(self) -> QuerySet[Submission]:
        team, _, user = find_team(self.request, self.kwargs["pk"])
        return find_team_submissions(team, user).defer("log")

    def get_serializer_context(self) -> dict[str, Any]:
        # All of them are the team's, which saves a query for each.
        viewer = Viewer(is_owner=False, is_task_owner=False, is_member=True)
        return {**super().get_serializer_context(), "viewer": lambda _: viewer}


class TeamMembers(_TeamBaseView):
    @write("team_members_invite", TeamInviteeSerializer, {201: TeamMemberSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Invite an email address, whose owner can accept or decline. Team owners only."""
        team, _, user = find_team(request, pk)
        invitation = services.invite_member(
            team=team, actor=user, **read(TeamInviteeSerializer, request)
        )
        body = TeamMemberSerializer(invitation, context={"reader": user}).data
        return Response(body, status.HTTP_201_CREATED)


class TeamMemberView(_TeamBaseView):
    @write("team_members_change", TeamOwnershipSerializer, TeamSerializer)
    def patch(self, request: Request, pk: int, member: int) -> Response:
        """Make a member an owner, or an owner an ordinary member. Team owners only."""
        team, _, user = find_team(request, pk)
        membership = get_object_or_404(team.members, pk=member)
        is_owner = read(TeamOwnershipSerializer, request)["is_owner"]
        services.set_owner(team=team, actor=user, member=membership, is_owner=is_owner)
        return Response(_describe_team(user, team))

    @write("team_members_remove", None, {204: None})
    def delete(self, request: Request, pk: int, member: int) -> Response:
        """Remove a member or withdraw an invitation. Team owners only."""
        team, _, user = find_team(request, pk)
        membership = get_object_or_404(team.members, pk=member)
        services.remove_member(team=team, actor=user, member=membership)
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(get=extend_schema(operation_id="team_invitations_list"))
class TeamInvitations(generics.ListAPIView[TeamMember]):
    """List invitations to your confirmed addresses."""

    serializer_class = TeamInvitationSerializer
    queryset = TeamMember.objects.none()

    def get_queryset(self) -> QuerySet[TeamMember]:
        return find_invitations(get_person(self.request))


class TeamInvitationAnswer(_TeamBaseView):
    accepts = True

    def answer_invitation(self, request: Request, pk: int) -> Response:
        """Accept or decline the invitation. Raises Http404 if it is not yours."""
        user = get_person(request)
        # Only invitations to addresses that the person has confirmed.
        invitation = get_object_or_404(find_invitations(user), pk=pk)
        service = services.accept_invitation if self.accepts else services.decline_invitation
        service(invitation=invitation, user=user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class TeamInvitationAccept(TeamInvitationAnswer):
    @write("team_invitations_accept", None, {204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Accept an invitation.

        You then see the team's unpublished models, and the team sees those that you submit for it.
        """
        return self.answer_invitation(request, pk)


class TeamInvitationDecline(TeamInvitationAnswer):
    accepts = False

    @write("team_invitations_decline", None, {204: None})
    def post(self, request: Request, pk: int) -> Response:
        """Decline an invitation."""
        return self.answer_invitation(request, pk)
