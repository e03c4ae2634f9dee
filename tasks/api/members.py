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
from core.accounts.people import get_account_address, get_person, get_public_name
from core.mail.addresses import AddressSerializerField
from core.web.api import read
from core.web.form_fields import build_request_field
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
        source="is_effective", help_text="false: its person has yet to confirm this address."
    )

    class Meta:
        model = TaskMember
        fields = read_only_fields = ("id", "name", "email", "role", "counts")

    def get_name(self, member: TaskMember) -> str:
        return get_public_name(member.user)

    def get_email(self, member: TaskMember) -> str | None:
        return get_account_address(member.user, is_owner=self.context["is_owner"])


class RoleSerializer(serializers.Serializer[Any]):
    """The role to give to a member."""

    role = build_request_field(RoleForm, "role", choices=TaskMember.Role.choices)


class NewMemberSerializer(RoleSerializer):
    """A person to add, with their role."""

    email = AddressSerializerField(help_text="Of an account.")


def find_task_members(task: Task) -> QuerySet[TaskMember]:
    """Return the task's members with their annotators.

    Their attribute `is_effective` says whether the role counts.
    """
    return (
        task.members.select_colleagues().annotate_effectiveness().select_related("user__annotator")
    )


def _serialize_for_owner(member: TaskMember) -> Any:
    return MemberSerializer(member, context={"is_owner": True}).data


class _MembersView(APIView):
    """Base view of members.

    Writes count against the submission rate limit, because they reveal which addresses have
    accounts.
    """

    write_scope = ApiToken.Scope.OWN
    throttle = "submit"

    def get_owned_task(self, code: str) -> Task:
        """Return the task. The person must own it; see `find_task` for errors."""
        return find_task(self.request, code, can_own, kinds=ALL_KINDS)

    def change(self, task: Task, **members: list[TaskMember]) -> None:
        """Change members on behalf of the requesting person. Raises Refused."""
        change_members(task=task, actor=get_person(self.request), **members)


@extend_schema_view(get=extend_schema(operation_id="members_list"))
class Members(_MembersView, generics.ListAPIView[TaskMember]):
    """The members of a task and their roles. Reviewers only; owners also get addresses."""

    serializer_class = MemberSerializer
    queryset = TaskMember.objects.none()

    def get_queryset(self) -> QuerySet[TaskMember]:
        self.task = find_task(self.request, self.kwargs["code"], can_review, kinds=ALL_KINDS)
        return find_task_members(self.task)

    def get_serializer_context(self) -> dict[str, Any]:
        is_owner = hasattr(self, "task") and can_own(self.request.user, self.task)
        return {**super().get_serializer_context(), "is_owner": is_owner}

    @write("members_add", NewMemberSerializer, {201: MemberSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Give a person a role, which counts once they have confirmed the address. Owners only."""
        task = self.get_owned_task(code)
        data = read(NewMemberSerializer, request)
        user = find_account(data["email"])
        member = TaskMember(task=task, user=user, role=data["role"])
        self.change(task, added_members=[member])
        stored_member = find_task_members(task).get(pk=member.pk)
        return Response(_serialize_for_owner(stored_member), status.HTTP_201_CREATED)


class MemberView(_MembersView):
    """One member."""

    @write("members_change", RoleSerializer, MemberSerializer)
    def patch(self, request: Request, code: str, pk: int) -> Response:
        """Change a member's role. Refused for the last owner."""
        task = self.get_owned_task(code)
        member = get_object_or_404(find_task_members(task), pk=pk)
        member.role = read(RoleSerializer, request)["role"]
        self.change(task, changed_members=[member])
        return Response(_serialize_for_owner(member))

    @write("members_remove", gives={204: None})
    def delete(self, request: Request, code: str, pk: int) -> Response:
        """Remove a member. Refused for the last owner."""
        task = self.get_owned_task(code)
        member = get_object_or_404(find_task_members(task), pk=pk)
        self.change(task, removed_members=[member])
        return Response(status=status.HTTP_204_NO_CONTENT)
