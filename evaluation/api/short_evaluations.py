"""API views of short evaluations: estimates of a paid model's score from some examples of a set."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.web.api import read
from core.web.form_fields import build_request_field
from evaluation.api.models import NewestFirstPages
from evaluation.models import ShortEvaluation
from evaluation.runs.short.services import (
    MAX_HALF_WIDTH,
    MIN_HALF_WIDTH,
    cancel_short_evaluation,
    request_short_evaluation,
)
from evaluation.submissions.short_evaluations import (
    describe_evaluations,
    select_visible_evaluations,
)
from evaluation.submissions.short_views import ShortEvaluationForm
from evaluation.submissions.visibility import find_owned_submission, find_submission

ID_PARAMETER = OpenApiParameter("id", OpenApiTypes.UUID, "path", description="The model's.")


class CloseModelSerializer(serializers.Serializer[Any]):
    """A published model that can't be told apart at this length."""

    id = serializers.UUIDField(source="pk")
    name = serializers.CharField()


class ShortEvaluationSerializer(serializers.Serializer[Any]):
    """An estimate of a model's score on a set from some of its examples. Never a score.

    Rates are 0-1, costs in the currency of the owner's prices.
    """

    id = serializers.UUIDField(source="evaluation.pk")
    evaluation_set = serializers.CharField(source="evaluation.version.evaluation_set.name")
    version = serializers.IntegerField(source="evaluation.version.version")
    size = serializers.IntegerField(
        source="evaluation.version.size", help_text="Examples of the set."
    )
    half_width = serializers.FloatField(
        source="evaluation.half_width", help_text="Of the wanted interval of 95%."
    )
    most_questions = serializers.IntegerField(source="evaluation.most_questions")
    most_cost = serializers.FloatField(allow_null=True, help_text="For those inside.")
    state = serializers.ChoiceField(ShortEvaluation.State.choices, source="evaluation.state")
    outcome = serializers.CharField(source="evaluation.outcome", help_text="As of a run.")
    error = serializers.CharField(source="evaluation.error")
    message = serializers.CharField(source="evaluation.message")
    progress = serializers.FloatField(source="evaluation.progress")
    stop_reason = serializers.CharField(
        source="evaluation.stop_reason", help_text="width, questions or cost; empty: not yet."
    )
    value = serializers.FloatField(
        source="evaluation.value", allow_null=True, help_text="The estimate; null: not yet."
    )
    low = serializers.FloatField(source="evaluation.low", allow_null=True)
    high = serializers.FloatField(source="evaluation.high", allow_null=True)
    asked = serializers.IntegerField(source="evaluation.asked", help_text="Examples.")
    unanswered = serializers.IntegerField(
        source="evaluation.unanswered", help_text="Of these; they count as wrong."
    )
    lost = serializers.IntegerField(
        source="evaluation.lost",
        help_text="Answers that a stopped worker did not store; the interval allows for them.",
    )
    spent = serializers.FloatField(allow_null=True, help_text="For those inside.")
    full_cost = serializers.FloatField(
        allow_null=True, help_text="Of all examples, if they cost what the asked ones did."
    )
    close_models = CloseModelSerializer(
        many=True, help_text="Published models that can't be told apart, the nearest first."
    )
    most_exposed = serializers.IntegerField(
        source="evaluation.most_exposed",
        allow_null=True,
        help_text="Short evaluations that asked its most asked example.",
    )
    exposed_in = serializers.IntegerField(
        source="evaluation.exposed_in",
        allow_null=True,
        help_text="Short evaluations of this version until then.",
    )
    queued_at = serializers.DateTimeField(source="evaluation.queued_at")
    finished_at = serializers.DateTimeField(source="evaluation.finished_at", allow_null=True)


class NewShortEvaluationSerializer(serializers.Serializer[Any]):
    """A request for a short evaluation."""

    evaluation_set = serializers.CharField(
        max_length=60, help_text="Its newest version. Its inputs must be allowed to leave."
    )
    half_width = serializers.FloatField(
        min_value=MIN_HALF_WIDTH,
        max_value=MAX_HALF_WIDTH,
        help_text="Of the wanted interval of 95%: 0.03 for 3 points.",
    )
    most_questions = build_request_field(
        ShortEvaluationForm, "most_questions", help_text="null: as many as the precision needs."
    )
    most_cost = build_request_field(
        ShortEvaluationForm, "most_cost", help_text="null: the model's cap alone."
    )


@extend_schema_view(
    get=extend_schema(
        operation_id="models_short_evaluations_list",
        parameters=[ID_PARAMETER],
        responses=ShortEvaluationSerializer(many=True),
    )
)
class ShortEvaluations(generics.ListAPIView[ShortEvaluation]):
    """List a model's short evaluations, newest first.

    Those on sealed and hidden sets are listed for the task's editors only.
    """

    is_public = True
    write_scope = ApiToken.Scope.SUBMIT
    serializer_class = ShortEvaluationSerializer
    pagination_class = NewestFirstPages
    queryset = ShortEvaluation.objects.none()

    def get_queryset(self) -> QuerySet[ShortEvaluation]:
        submission, self.viewer = find_submission(self.request, self.kwargs["pk"])
        return select_visible_evaluations(submission, self.viewer)

    def paginate_queryset(self, queryset: Any) -> Any:
        """Return a page of short evaluations, each as this person may see it."""
        return describe_evaluations(super().paginate_queryset(queryset) or (), self.viewer)

    @write(
        "models_short_evaluations_create",
        NewShortEvaluationSerializer,
        {201: ShortEvaluationSerializer},
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Request a short evaluation of a chat model. Model owners only.

        Refused on sealed sets unless you edit the task, on sets with a score of this model, and if
        the main metric isn't accuracy or exact match.
        """
        submission, user = find_owned_submission(request, pk)
        fields = read(NewShortEvaluationSerializer, request)
        evaluation = request_short_evaluation(
            submission=submission, actor=user, set_name=fields.pop("evaluation_set"), **fields
        )
        return Response(_describe_one(request, pk, evaluation.pk), status.HTTP_201_CREATED)


class ShortEvaluationView(APIView):
    is_public = True

    @extend_schema(operation_id="models_short_evaluations_get", responses=ShortEvaluationSerializer)
    def get(self, request: Request, pk: UUID, evaluation: UUID) -> Response:
        """Get a short evaluation."""
        return Response(_describe_one(request, pk, evaluation))


class CancelShortEvaluation(APIView):
    write_scope = ApiToken.Scope.SUBMIT

    @write("models_short_evaluations_cancel", None, ShortEvaluationSerializer)
    def post(self, request: Request, pk: UUID, evaluation: UUID) -> Response:
        """Cancel a short evaluation that isn't over. Model owners only."""
        submission, user = find_owned_submission(request, pk)
        viewer = find_submission(request, pk)[1]
        row = get_object_or_404(select_visible_evaluations(submission, viewer), pk=evaluation)
        cancel_short_evaluation(evaluation=row, actor=user)
        return Response(_describe_one(request, pk, evaluation))


def _describe_one(request: Request, pk: UUID, evaluation_id: UUID) -> Any:
    """Return a short evaluation as this person may see it. Raises Http404."""
    submission, viewer = find_submission(request, pk)
    evaluation = get_object_or_404(select_visible_evaluations(submission, viewer), pk=evaluation_id)
    (shown,) = describe_evaluations([evaluation], viewer)
    return ShortEvaluationSerializer(shown).data
