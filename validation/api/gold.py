"""The API's views of gold items: examples whose answer is known; for reviewers only."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from core.accounts.api import write
from core.accounts.people import get_public_name
from core.web.api import read
from tasks.access import find_task
from tasks.permissions import can_review
from validation.api.decisions import ReviewerView
from validation.api.serializers import VOTE_HELP, VoteField
from validation.judging import gold
from validation.models import Gold


class NewGoldSerializer(serializers.Serializer[Any]):
    """A new gold item."""

    explanation = serializers.CharField(
        max_length=500,
        allow_blank=True,
        default="",
        help_text="Shown to validators who answered otherwise.",
    )


class GoldSerializer(serializers.ModelSerializer[Gold]):
    """An example with a known answer, shown among the others to check validators."""

    example: Any = serializers.UUIDField(source="example.uuid")
    round = serializers.IntegerField(source="example.round.number")
    answer = VoteField(help_text=f"What is right: {VOTE_HELP}")
    made_by = serializers.SerializerMethodField(
        help_text="A pseudonym; empty: the account is gone."
    )

    class Meta:
        model = Gold
        fields = read_only_fields = (
            "example",
            "round",
            "answer",
            "explanation",
            "made_by",
            "created_at",
        )

    def get_made_by(self, item: Gold) -> str:
        return get_public_name(item.made_by)


def select_gold_for_api() -> QuerySet[Gold]:
    """Select gold items with all related rows that the API shows."""
    return Gold.objects.select_related("example__round", "made_by__annotator")


class GoldView(ReviewerView):
    @write("gold_mark", NewGoldSerializer, GoldSerializer)
    def put(self, request: Request, uuid: UUID) -> Response:
        """Make a decided example gold, or change its explanation. For reviewers."""
        example, owner = self.get_example_and_reviewer(uuid)
        body = read(NewGoldSerializer, request)
        gold_item = gold.mark_gold(example=example, owner=owner, **body)
        return Response(GoldSerializer(select_gold_for_api().get(pk=gold_item.pk)).data)

    @write("gold_unmark", gives={204: None})
    def delete(self, request: Request, uuid: UUID) -> Response:
        """Unmark a gold item and delete the answers to it. For reviewers."""
        example, owner = self.get_example_and_reviewer(uuid)
        gold.unmark_gold(example=example, owner=owner)
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema_view(get=extend_schema(operation_id="gold_list"))
class GoldItems(generics.ListAPIView[Gold]):
    """The gold items of a task, in the order in which they were written."""

    serializer_class = GoldSerializer
    # Only for its model: the schema is generated without a request.
    queryset = Gold.objects.none()

    def get_queryset(self) -> QuerySet[Gold]:
        task = find_task(self.request, self.kwargs["code"], can_review)
        # Withdrawn examples are not assigned to anybody.
        return select_gold_for_api().filter(
            example__round__task=task, example__retracted_at__isnull=True
        )
