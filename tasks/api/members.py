"""The API's views of who belongs to a task."""

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
from core.accounts.people import account_address, person, public_name
from core.mail.addresses import AddressInRequest
from core.web.api import read
from core.web.form_fields import request_field
from tasks.access import ALL_KINDS, find_task
from tasks.members.forms import RoleForm
from tasks.models import Task, TaskMember
from tasks.permissions import can_own, can_review
from tasks.services import change_members, find_account


class MemberSerializer(serializers.ModelSerializer[TaskMember]):
    """A person's role in a task."""

    name = serializers.SerializerMethodField(help_text="A pseudonym; empty: none yet.")
    email = serializers.SerializerMethodField(help_text="null: you do not own the task.")
    counts = serializers.BooleanField(
        source="stands", help_text="false: its person has yet to confirm this address."
    )

    class Meta:
        model = TaskMember
        fields = read_only_fields = ("id", "name", "email", "role", "counts")

    def get_name(self, member: TaskMember) -> str:
        return public_name(member.user)

    def get_email(self, member: TaskMember) -> str | None:
        return account_address(member.user, owns=self.context["owns"])


class RoleSerializer(serializers.Serializer[Any]):
    """The role that a member is given."""

    role = request_field(RoleForm, "role", choices=TaskMember.Role.choices)


class NewMemberSerializer(RoleSerializer):
    """A person to add, with their role."""

    email = AddressInRequest(help_text="Of an account.")


def find_task_members(task: Task) -> QuerySet[TaskMember]:
    """Return the members with their annotators, and whether each role counts."""
    return task.members.colleagues().with_standing().select_related("user__annotator")


def _serialize_for_owner(member: TaskMember) -> Any:
    return MemberSerializer(member, context={"owns": True}).data


class _MembersView(APIView):
    """Base view of members.

    Writes count against the submission rate limit, because they reveal which addresses have
    accounts.
    """

    write_scope = ApiToken.Scope.OWN
    throttle = "submit"

    def owned(self, code: str) -> Task:
        """Return the task. Owners only."""
        return find_task(self.request, code, can_own, kinds=ALL_KINDS)

    def change(self, task: Task, **members: list[TaskMember]) -> None:
        """Change members on behalf of the requesting person. Raises Refused."""
        change_members(task=task, actor=person(self.request), **members)


@extend_schema_view(get=extend_schema(operation_id="members_list"))
class Members(_MembersView, generics.ListAPIView[TaskMember]):
    """The members of a task and their roles. Reviewers only; owners also get addresses."""

    serializer_class = MemberSerializer
    queryset = TaskMember.objects.none()

    def get_queryset(self) -> QuerySet[TaskMember]:
        self.task = find_task(self.request, self.kwargs["code"], can_review, kinds=ALL_KINDS)
        return find_task_members(self.task)

    def get_serializer_context(self) -> dict[str, Any]:
        owns = hasattr(self, "task") and can_own(self.request.user, self.task)
        return {**super().get_serializer_context(), "owns": owns}

    @write("members_add", NewMemberSerializer, {201: MemberSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Give a person a role, which counts once they have confirmed the address. Owners only."""
        task = self.owned(code)
        data = read(NewMemberSerializer, request)
        user = find_account(data["email"])
        member = TaskMember(task=task, user=user, role=data["role"])
        self.change(task, added=[member])
        stored = find_task_members(task).get(pk=member.pk)
        return Response(_serialize_for_owner(stored), status.HTTP_201_CREATED)


class MemberView(_MembersView):
    """One member."""

    @write("members_change", RoleSerializer, MemberSerializer)
    def patch(self, request: Request, code: str, pk: int) -> Response:
        """Change a member's role. Refused for the last owner."""
        task = self.owned(code)
        member = get_object_or_404(find_task_members(task), pk=pk)
        member.role = read(RoleSerializer, request)["role"]
        self.change(task, changed=[member])
        return Response(_serialize_for_owner(member))

    @write("members_remove", gives={204: None})
    def delete(self, request: Request, code: str, pk: int) -> Response:
        """Remove a member. Refused for the last owner."""
        task = self.owned(code)
        member = get_object_or_404(find_task_members(task), pk=pk)
        self.change(task, removed=[member])
        return Response(status=status.HTTP_204_NO_CONTENT)
