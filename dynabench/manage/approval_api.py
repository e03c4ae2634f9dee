"""The API of a task's approval: its state, and the request for it, with the rules of the page."""

from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.accounts.people import get_person
from core.errors import Invalid
from core.web.api import read
from core.web.form_fields import build_request_field
from dynabench.communities.models import Community
from dynabench.communities.permissions import find_visible_communities
from dynabench.communities.proposal_services import request_task_approval
from tasks.access import ALL_KINDS, find_task
from tasks.making.forms import ApprovalForm
from tasks.models import Task, TaskProposal
from tasks.permissions import can_own, needs_approval


class NewApprovalSerializer(serializers.Serializer[Any]):
    """A request for approval with the information on which it is decided."""

    goal = build_request_field(
        ApprovalForm, "goal", help_text="What the task explores, and what its data is for."
    )
    people = build_request_field(
        ApprovalForm, "people", help_text="Who writes and judges, and about how many people."
    )
    show = build_request_field(
        ApprovalForm, "show", help_text="Everyone can see the task once it is approved."
    )
    community = serializers.CharField(
        default="",
        allow_blank=True,
        help_text="Community slug. Its owners can decide too, and the task joins it. Empty: none.",
    )


class ApprovalSerializer(serializers.Serializer[Any]):
    """The state of a task's request for approval."""

    is_needed = serializers.BooleanField(
        help_text="Approval is required before anyone but members can see the task."
    )
    state = serializers.ChoiceField(
        TaskProposal.State.choices, allow_null=True, help_text="null: not requested yet."
    )
    goal = serializers.CharField(
        help_text="Empty until approval is requested, like the next three fields."
    )
    people = serializers.CharField()
    community = serializers.CharField(help_text="Community slug.")
    reason = serializers.CharField(help_text="Reason for the decision.")
    show = serializers.BooleanField()


class ApprovalView(APIView):
    """The approval of a task."""

    write_scope = ApiToken.Scope.OWN

    @extend_schema(operation_id="approvals_get", responses=ApprovalSerializer)
    def get(self, request: Request, code: str) -> Response:
        """Show whether the task needs approval, and the state of its request. Owners only."""
        task = find_task(request, code, can_own, kinds=ALL_KINDS)
        return Response(_describe_approval(task))

    @write("approvals_create", NewApprovalSerializer, {201: ApprovalSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Ask for approval to open the task to non-members, and email administrators. Owners only.

        Responds with 409 if the task needs no approval (`approved`) or a request is pending
        (`waiting`).
        """
        task, owner = find_task(request, code, can_own, kinds=ALL_KINDS), get_person(request)
        values = read(NewApprovalSerializer, request)
        values["community"] = _find_community(owner, values["community"])
        request_task_approval(task=task, actor=owner, **values)
        return Response(_describe_approval(task), status.HTTP_201_CREATED)


def _find_community(owner: User, slug: str) -> Community | None:
    if not slug:
        return None
    community = find_visible_communities(owner).filter(slug=slug).first()
    if community is None:
        raise Invalid("This community doesn't exist.", field="community")
    return community


def _describe_approval(task: Task) -> dict[str, Any]:
    values: dict[str, Any] = {"is_needed": needs_approval(task), "community": ""}
    proposals = TaskProposal.objects.select_related("for_community__community")
    proposal = proposals.filter(task=task).first()
    if proposal is None:
        values |= {"state": None, "goal": "", "people": "", "reason": "", "show": True}
        return dict(ApprovalSerializer(values).data)
    for name in ("state", "goal", "people", "reason", "show"):
        values[name] = getattr(proposal, name)
    community_link = getattr(proposal, "for_community", None)
    if community_link:
        values["community"] = community_link.community.slug
    return dict(ApprovalSerializer(values).data)


urlpatterns = [path("tasks/<slug:code>/approval/", ApprovalView.as_view(), name="approval")]
