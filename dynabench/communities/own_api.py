"""The API for a community's owners, and for people who propose one or want a task to join one.

It calls the services of the pages, so the same rules apply.
"""

from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.accounts.people import get_person
from core.mail.addresses import AddressSerializerField
from core.web.api import NewestFirst, read
from core.web.form_fields import build_request_field
from dynabench.communities import services
from dynabench.communities.api import PostSerializer, find_visible_community
from dynabench.communities.forms import CommunityDecisionForm, CommunityProposalForm, PostForm
from dynabench.communities.models import Community, CommunityProposal, CommunityTask
from dynabench.communities.permissions import can_manage
from dynabench.communities.proposal_services import decide_community, propose_community
from dynabench.communities.rules import MAX_WEIGHT
from dynabench.communities.selectors import select_owned_tasks
from tasks.permissions import cache_roles, can_own, can_see


class CommunityProposalSerializer(serializers.ModelSerializer[CommunityProposal]):
    """A proposal for a community, with the decision on it."""

    community = serializers.CharField(
        source="community.slug",
        default=None,
        allow_null=True,
        help_text="The community that was created.",
    )

    class Meta:
        model = CommunityProposal
        fields = ("id", "name", "slug", "goal", "state", "reason", "community", "created_at")


class NewCommunityProposalSerializer(serializers.Serializer[Any]):
    """A new proposal for a community."""

    name = build_request_field(CommunityProposalForm, "name")
    slug = build_request_field(CommunityProposalForm, "slug")
    goal = build_request_field(CommunityProposalForm, "goal")


class CommunityDecisionSerializer(serializers.Serializer[Any]):
    """An administrator's decision on a proposed community."""

    approve = serializers.BooleanField()
    slug = build_request_field(
        CommunityDecisionForm, "slug", required=False, help_text="Default: the proposed one."
    )
    reason = build_request_field(
        CommunityDecisionForm, "reason", default="", help_text="Required if you decline."
    )


class CommunityOwnerSerializer(serializers.Serializer[Any]):
    """An owner of a community, by pseudonym."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField(source="annotator", default="", help_text="A pseudonym.")


class NewCommunityOwnerSerializer(serializers.Serializer[Any]):
    """The email address of a new owner."""

    email = AddressSerializerField(help_text="Confirmed email address of an account.")


class NewPostSerializer(serializers.Serializer[Any]):
    """A new item of news."""

    title = build_request_field(PostForm, "title")
    text = build_request_field(PostForm, "text", help_text="Markdown.")


class CommunityEntrySerializer(serializers.Serializer[Any]):
    """A task in a community, or its request to join."""

    id = serializers.IntegerField()
    task = serializers.CharField(help_text="Task code. Empty: you can't see the task.")
    state = serializers.ChoiceField(CommunityTask.State.choices)
    weight = serializers.FloatField(help_text="Default weight on the board across tasks.")


class NewCommunityEntrySerializer(serializers.Serializer[Any]):
    """A request that one of the caller's tasks join a community."""

    task = serializers.CharField(help_text="Task code.")


class CommunityEntryChangeSerializer(serializers.Serializer[Any]):
    """Admission of a task, or its new weight."""

    state = serializers.ChoiceField([CommunityTask.State.IN], required=False)
    weight = serializers.FloatField(min_value=0, max_value=MAX_WEIGHT, required=False)


class OwnerView(APIView):
    """Base view for actions that need the scope for owners."""

    write_scope = ApiToken.Scope.OWN

    def get_owned_community(self, slug: str) -> Community:
        """Return the community, if the person is one of its owners.

        Raises Refused; Http404 if the person may not see it.
        """
        community = find_visible_community(self.request, slug)
        services.check_can_manage(get_person(self.request), community)
        return community


@extend_schema_view(get=extend_schema(operation_id="community_proposals_list"))
class CommunityProposals(OwnerView, generics.ListAPIView[CommunityProposal]):
    """The caller's own proposals, newest first; administrators also get all pending ones."""

    serializer_class = CommunityProposalSerializer
    pagination_class = NewestFirst
    queryset = CommunityProposal.objects.none()

    def get_queryset(self) -> QuerySet[CommunityProposal]:
        """Return the user's own proposals; administrators also get all pending ones."""
        user = get_person(self.request)
        is_readable = Q(proposer=user)
        if user.is_superuser:
            is_readable |= Q(state=CommunityProposal.State.WAITING)
        return CommunityProposal.objects.filter(is_readable).select_related("community")

    @write(
        "community_proposals_make",
        NewCommunityProposalSerializer,
        {201: CommunityProposalSerializer},
    )
    def post(self, request: Request) -> Response:
        """Propose a community. An administrator decides on it."""
        fields = read(NewCommunityProposalSerializer, request)
        proposal = propose_community(proposer=get_person(request), **fields)
        return Response(CommunityProposalSerializer(proposal).data, status.HTTP_201_CREATED)


class CommunityProposalView(OwnerView):
    @write("community_proposals_decide", CommunityDecisionSerializer, CommunityProposalSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        """Approve a proposal, which creates the community, or decline it. Administrators only."""
        actor = get_person(request)
        # For others there is no such address.
        if not actor.is_superuser:
            raise Http404

        proposal = get_object_or_404(CommunityProposal, pk=pk)
        # The proposed address, unless the administrator chooses another one.
        decision = {"slug": proposal.slug} | read(CommunityDecisionSerializer, request)
        decided_proposal = decide_community(proposal=proposal, actor=actor, **decision)
        return Response(CommunityProposalSerializer(decided_proposal).data)


class CommunityOwners(OwnerView):
    """The owners of a community.

    Adding one counts towards the submission rate limit, because it reveals whether an
    address has an account.
    """

    throttle = "submit"

    @extend_schema(
        operation_id="community_owners_list", responses=CommunityOwnerSerializer(many=True)
    )
    def get(self, request: Request, slug: str) -> Response:
        """List the owners of a community. Owners only."""
        return _respond_with_owners(self.get_owned_community(slug))

    @write(
        "community_owners_add",
        NewCommunityOwnerSerializer,
        {201: CommunityOwnerSerializer(many=True)},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Make a person an owner. Owners only."""
        community = self.get_owned_community(slug)
        fields = read(NewCommunityOwnerSerializer, request)
        services.add_owner(community=community, actor=get_person(request), **fields)
        return _respond_with_owners(community, status.HTTP_201_CREATED)


def _respond_with_owners(community: Community, code: int = status.HTTP_200_OK) -> Response:
    """Return the response that lists the community's owners."""
    rows = community.owners.select_related("annotator").order_by("pk")
    return Response(CommunityOwnerSerializer(rows, many=True).data, code)


class CommunityOwner(OwnerView):
    @write("community_owners_remove", gives={204: None})
    def delete(self, request: Request, slug: str, pk: int) -> Response:
        """Remove an owner; owners may remove themselves. The last one cannot be removed."""
        community = self.get_owned_community(slug)
        owner: User = get_object_or_404(community.owners, pk=pk)
        services.remove_owner(community=community, actor=get_person(request), user=owner)
        return Response(status=status.HTTP_204_NO_CONTENT)


class CommunityNews(OwnerView):
    @write("community_news_post", NewPostSerializer, {201: PostSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Post a news item. Owners only."""
        community = self.get_owned_community(slug)
        fields = read(NewPostSerializer, request)
        post = services.post_news(community=community, actor=get_person(request), **fields)
        # The database sets the time of the post.
        post.refresh_from_db()
        return Response(PostSerializer(post).data, status.HTTP_201_CREATED)


class CommunityPost(OwnerView):
    @write("community_news_delete", gives={204: None})
    def delete(self, request: Request, slug: str, pk: int) -> Response:
        """Delete a news item. Owners only."""
        post = get_object_or_404(
            self.get_owned_community(slug).posts.select_related("community"), pk=pk
        )
        services.delete_post(post=post, actor=get_person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class CommunityEntries(OwnerView):
    @extend_schema(
        operation_id="community_entries_list", responses=CommunityEntrySerializer(many=True)
    )
    def get(self, request: Request, slug: str) -> Response:
        """List the community's tasks and the requests to join. Owners only."""
        entries = list(self.get_owned_community(slug).entries.select_related("task"))
        user = get_person(request)
        # One query for the roles in all tasks, which `_entry` asks about each.
        cache_roles(user, [entry.task for entry in entries])
        rows = [_describe_entry(user, entry) for entry in entries]
        return Response(CommunityEntrySerializer(rows, many=True).data)

    @write("community_entries_add", NewCommunityEntrySerializer, {201: CommunityEntrySerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Request that a task of your own join. If you also own the community, it joins at once."""
        community, user = find_visible_community(request, slug), get_person(request)
        fields = read(NewCommunityEntrySerializer, request)
        task = select_owned_tasks(user).filter(code=fields["task"]).first()
        if task is None:
            raise serializers.ValidationError({"task": ["You don't own a task with this code."]})
        entry = services.ask_to_join(community=community, task=task, actor=user)
        body = CommunityEntrySerializer(_describe_entry(user, entry)).data
        return Response(body, status.HTTP_201_CREATED)


def _describe_entry(user: User, entry: CommunityTask) -> dict[str, Any]:
    """Return an entry in the API's format, without the code if the user may not see the task."""
    code = entry.task.code if can_see(user, entry.task) else ""
    return {"id": entry.pk, "task": code, "state": entry.state, "weight": entry.weight}


class CommunityEntry(OwnerView):
    @write("community_entries_change", CommunityEntryChangeSerializer, CommunityEntrySerializer)
    def patch(self, request: Request, slug: str, pk: int) -> Response:
        """Admit a task, or change the weight of one that you may see. Owners only."""
        community, user = self.get_owned_community(slug), get_person(request)
        entry = get_object_or_404(community.entries.select_related("task", "community"), pk=pk)
        changes = read(CommunityEntryChangeSerializer, request)
        # An owner of the community learns nothing about a hidden task, not even by an error.
        if "weight" in changes and not can_see(user, entry.task):
            raise Http404
        if "state" in changes:
            services.admit_task(entry=entry, actor=user)
        if "weight" in changes:
            weights = {entry.pk: changes["weight"]}
            services.set_weights(community=community, actor=user, weights=weights)
        # The services have changed rows, not this object.
        entry.refresh_from_db(fields=["state", "weight"])
        return Response(CommunityEntrySerializer(_describe_entry(user, entry)).data)

    @write("community_entries_remove", gives={204: None})
    def delete(self, request: Request, slug: str, pk: int) -> Response:
        """Decline or remove a task. Owners of the community or of the task only."""
        community, user = find_visible_community(request, slug), get_person(request)
        entry = get_object_or_404(community.entries.select_related("task", "community"), pk=pk)
        if not (can_manage(user, community) or can_own(user, entry.task)):
            raise Http404
        services.remove_entry(entry=entry, actor=user)
        return Response(status=status.HTTP_204_NO_CONTENT)


COMMUNITY_PATH = "communities/<slug:slug>/"
urlpatterns = [
    path("communities/proposals/", CommunityProposals.as_view(), name="community-proposals"),
    path(
        "communities/proposals/<int:pk>/",
        CommunityProposalView.as_view(),
        name="community-proposal",
    ),
    path(f"{COMMUNITY_PATH}owners/", CommunityOwners.as_view(), name="community-owners"),
    path(f"{COMMUNITY_PATH}owners/<int:pk>/", CommunityOwner.as_view(), name="community-owner"),
    path(f"{COMMUNITY_PATH}news/", CommunityNews.as_view(), name="community-news"),
    path(f"{COMMUNITY_PATH}news/<int:pk>/", CommunityPost.as_view(), name="community-post"),
    path(f"{COMMUNITY_PATH}entries/", CommunityEntries.as_view(), name="community-entries"),
    path(f"{COMMUNITY_PATH}entries/<int:pk>/", CommunityEntry.as_view(), name="community-entry"),
]
