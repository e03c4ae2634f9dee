"""The API's views of the review queue, and of what reviewers decide about examples."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from annotation.models import Example
from annotation.moderation import withdraw_example
from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.accounts.people import get_person, get_public_name
from core.web.api import NewestFirst, check_form, read, read_query
from core.web.form_fields import build_request_field
from tasks.access import find_task, require_permission
from tasks.models import Round
from tasks.permissions import can_review
from validation.api.examples import select_for_api
from validation.api.serializers import (
    VOTE_HELP,
    ConsensusSerializer,
    JudgedExampleSerializer,
    VoteField,
)
from validation.decisions.review_queue import PAGE_SIZE, Kind, ReviewPage, get_review_page
from validation.decisions.services import override_consensus, withdraw_override
from validation.judging.forms import DecisionForm
from validation.models import OwnerDecision

# “All” is a filter, not a reason.
REASONS = [choice for choice in Kind.choices if choice[0] != Kind.ALL]


class ReviewQuery(serializers.Serializer[Any]):
    """Filters for the review queue."""

    kind = serializers.ChoiceField(Kind.choices, default=Kind.ALL)
    round = serializers.IntegerField(required=False, help_text="Its number. Default: all.")
    # Up to the largest possible id, because the database fails at larger numbers.
    after = serializers.IntegerField(
        min_value=0, max_value=2**63 - 1, default=0, help_text="Where `next` continues."
    )
    page_size = serializers.IntegerField(min_value=1, max_value=100, default=PAGE_SIZE)


class ReviewItemSerializer(serializers.Serializer[Any]):
    """An example that needs a reviewer's decision, and the reason."""

    reasons = serializers.ListField(child=serializers.ChoiceField(REASONS))
    example = JudgedExampleSerializer()


class ReviewSerializer(serializers.Serializer[Any]):
    """A page of the queue. `results` can be short or empty even if `next` is set."""

    next = serializers.URLField(allow_null=True)
    results = ReviewItemSerializer(many=True)


class ReviewView(APIView):
    reads_query = ("GET",)

    @extend_schema(operation_id="review_list", parameters=[ReviewQuery], responses=ReviewSerializer)
    def get(self, request: Request, code: str) -> Response:
        """List a random twentieth of the judged examples, and all disagreements, oldest first.

        For reviewers.
        """
        task = find_task(request, code, can_review)
        query = read_query(ReviewQuery, request)
        rounds = {
            round.pk: round
            for round in task.rounds.select_related("task")
            if query.get("round", round.number) == round.number
        }
        page = get_review_page(
            rounds.values(), Kind(query["kind"]), query["after"], query["page_size"]
        )
        review_page = request.build_absolute_uri()
        body = {
            "next": replace_query_param(review_page, "after", page.after) if page.after else None,
            "results": _build_items(page, rounds),
        }
        return Response(ReviewSerializer(body, context={"full": True}).data)


def _build_items(page: ReviewPage, rounds: Mapping[int, Round]) -> list[dict[str, Any]]:
    """Return the examples as ReviewItemSerializer declares them."""
    examples = select_for_api(Example.objects.all()).in_bulk([item.pk for item in page.items])
    for example in examples.values():
        example.round = rounds[example.round_id]  # already loaded, which saves a query
    return [
        {"reasons": sorted(item.kinds, key=[*Kind].index), "example": examples[item.pk]}
        for item in page.items
    ]


class NewDecisionSerializer(serializers.Serializer[Any]):
    """A new decision by an owner."""

    # A label of up to 200 characters, after a prefix for the kind of vote.
    answer = serializers.CharField(max_length=210, help_text=VOTE_HELP)
    reason = build_request_field(
        DecisionForm, "reason", help_text="The author reads it, without your name."
    )


class DecisionSerializer(serializers.ModelSerializer[OwnerDecision]):
    """A decision by an owner, and the resulting consensus."""

    example: Any = serializers.UUIDField(source="example.uuid")
    answer = VoteField()
    consensus = ConsensusSerializer(source="example.consensus")

    class Meta:
        model = OwnerDecision
        fields = read_only_fields = ("example", "answer", "reason", "created_at", "consensus")


class PastDecisionSerializer(serializers.ModelSerializer[OwnerDecision]):
    """A decision by an owner; the one that was not withdrawn counts."""

    answer = VoteField()
    owner = serializers.SerializerMethodField(help_text="A pseudonym; empty: the account is gone.")

    class Meta:
        model = OwnerDecision
        fields = read_only_fields = ("answer", "reason", "owner", "created_at", "withdrawn_at")

    def get_owner(self, decision: OwnerDecision) -> str:
        return get_public_name(decision.owner)


class WithdrawalSerializer(serializers.Serializer[Any]):
    """The reason why an example is withdrawn."""

    reason = serializers.CharField(max_length=200, help_text="Kept in the log; never public.")


class ReviewerView(APIView):
    """Base view for reviewers' actions on an example."""

    write_scope = ApiToken.Scope.OWN

    def get_example_and_reviewer(self, uuid: UUID) -> tuple[Example, User]:
        """Return the example and the user, who must be allowed to review its task.

        Raises Http404, PermissionDenied.
        """
        rows = Example.objects.select_related("round__task")
        example = get_object_or_404(rows, uuid=uuid)
        require_permission(self.request.user, example.round.task, can_review)
        return example, get_person(self.request)


class DecisionView(ReviewerView):
    @write("decisions_create", NewDecisionSerializer, {201: DecisionSerializer})
    def post(self, request: Request, uuid: UUID) -> Response:
        """Override all votes with a decision, which replaces an earlier one. For reviewers."""
        example, owner = self.get_example_and_reviewer(uuid)
        body = read(NewDecisionSerializer, request)
        # Uses the page's form, so that both accept the same answers.
        form = DecisionForm(body, example=example)
        check_form(form)
        decision = override_consensus(
            example=example, owner=owner, choice=form.vote, reason=form.cleaned_data["reason"]
        )
        # The database has set the time.
        decision.refresh_from_db()
        return Response(DecisionSerializer(decision).data, status.HTTP_201_CREATED)

    @write("decisions_withdraw", gives={204: None})
    def delete(self, request: Request, uuid: UUID) -> Response:
        """Withdraw the decision, so that the votes decide again. For reviewers."""
        example, owner = self.get_example_and_reviewer(uuid)
        withdraw_override(example=example, owner=owner)
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(get=extend_schema(operation_id="decisions_list"))
class PastDecisions(ReviewerView, generics.ListAPIView[OwnerDecision]):
    """Every decision on an example, including withdrawn ones, newest first. For reviewers."""

    serializer_class = PastDecisionSerializer
    pagination_class = NewestFirst
    # Only for its model: the schema is generated without a request.
    queryset = OwnerDecision.objects.none()

    def get_queryset(self) -> QuerySet[OwnerDecision]:
        example, _ = self.get_example_and_reviewer(self.kwargs["uuid"])
        return example.owner_decisions.select_related("owner__annotator")


class WithdrawView(ReviewerView):
    @write("examples_withdraw", WithdrawalSerializer, {204: None})
    def post(self, request: Request, uuid: UUID) -> Response:
        """Remove an example from the round's numbers and later releases. For reviewers.

        Repeating the request changes nothing. Versions that are already released keep the example.
        """
        example, reviewer = self.get_example_and_reviewer(uuid)
        withdraw_example(example=example, actor=reviewer, **read(WithdrawalSerializer, request))
        return Response(status=status.HTTP_204_NO_CONTENT)
