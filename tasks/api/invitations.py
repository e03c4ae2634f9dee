"""The API's views of invitations to a task. Links for several people exist only on the page."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.mail.addresses import AddressSerializerField
from core.web.api import NewestFirst, read
from core.web.form_fields import build_request_field
from tasks.access import ALL_KINDS, find_task
from tasks.api.members import NewMemberSerializer
from tasks.members.forms import InvitationForm
from tasks.members.invitation_services import accept_invitation, revoke_invitation, send_invitations
from tasks.models import Invitation, Task
from tasks.permissions import can_own


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An invitation, with the people who accepted it."""

    email = serializers.CharField(source="address", help_text="Empty: a link for many.")
    state = serializers.ChoiceField(["open", "used", "revoked", "ended"])
    accepted_by = serializers.SerializerMethodField(help_text="Addresses of accounts.")

    class Meta:
        model = Invitation
        fields = ("id", "email", "role", "state", "uses", "most", "ends_at", "accepted_by")

    def get_accepted_by(self, invitation: Invitation) -> list[str]:
        """Return the addresses of the members who accepted the invitation."""
        return [member.user.email for member in invitation.members.all()]


class NewInvitationSerializer(NewMemberSerializer):
    """An invitation to send: the address, the role and how long the link works."""

    email = AddressSerializerField(help_text="It need not have an account.")
    days = build_request_field(InvitationForm, "days")


class KeySerializer(serializers.Serializer[Any]):
    """The key of an invitation that the person received."""

    key = serializers.CharField(max_length=100, help_text="The last part of its link.")


class JoinedSerializer(serializers.Serializer[Any]):
    """The task that the person has joined."""

    task = serializers.CharField(help_text="Its code.")


class _InvitationsView(APIView):
    """Base view of invitations.

    Writes count against the submission rate limit, because they send email.
    """

    write_scope = ApiToken.Scope.OWN
    throttle = "submit"

    def get_owned_task(self) -> Task:
        """Return the task. The person must own it; see `find_task` for errors."""
        return find_task(self.request, self.kwargs["code"], can_own, kinds=ALL_KINDS)


@extend_schema_view(get=extend_schema(operation_id="invitations_list"))
class Invitations(_InvitationsView, generics.ListAPIView[Invitation]):
    """All invitations of a task, newest first. Owners only."""

    serializer_class = InvitationSerializer
    pagination_class = NewestFirst
    queryset = Invitation.objects.none()

    def get_queryset(self) -> QuerySet[Invitation]:
        return self.get_owned_task().invitations.prefetch_related("members__user")

    @write("invitations_create", NewInvitationSerializer, {201: InvitationSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Email a link that one person can accept. Owners only.

        An earlier invitation to the same address ends.
        """
        task, data = self.get_owned_task(), read(NewInvitationSerializer, request)
        addresses = [data.pop("email")]
        (invitation,) = send_invitations(
            task=task, actor=get_person(request), addresses=addresses, **data
        )
        return Response(InvitationSerializer(invitation).data, status.HTTP_201_CREATED)


class InvitationView(_InvitationsView):
    @write("invitations_revoke", gives={204: None})
    def delete(self, request: Request, code: str, pk: int) -> Response:
        """Revoke an invitation. People who have accepted it remain members. Owners only."""
        invitation = get_object_or_404(self.get_owned_task().invitations, pk=pk)
        revoke_invitation(invitation=invitation, actor=get_person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class InvitationAcceptView(APIView):
    write_scope = ApiToken.Scope.ANNOTATE
    throttle = "submit"

    @write("invitations_accept", KeySerializer, JoinedSerializer)
    def post(self, request: Request) -> Response:
        """Join a task through an invitation. People who are already members keep their role."""
        task = accept_invitation(user=get_person(request), **read(KeySerializer, request))
        return Response({"task": task.code})
