"""API views of language models as judges: their agreement with people, and their scores."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.web.api import NewestFirst
from evaluation.judges.llm_judges.agreement import Agreement
from evaluation.judges.llm_judges.selectors import find_judge_scores, read_calibration
from evaluation.models import LlmJudge, LlmScore
from evaluation.submissions.visibility import find_visible_runs
from tasks.access import find_task
from tasks.permissions import can_edit


class AgreementSerializer(serializers.Serializer[Any]):
    """A judge's agreement with people, measured on examples that were not used to tune prompts."""

    is_calibrated = serializers.BooleanField(
        help_text="Whether it rests on enough examples (50). Else trust no score of the judge."
    )
    low = serializers.FloatField(allow_null=True, help_text="Of κ's interval of 95%.")
    kappa = serializers.FloatField(allow_null=True, help_text="Cohen's; null: not defined.")
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField(help_text="Examples that people and the judge have judged.")
    authors = serializers.IntegerField()
    both_correct = serializers.IntegerField()
    only_people = serializers.IntegerField(help_text="People say correct, the judge incorrect.")
    only_model = serializers.IntegerField()
    both_incorrect = serializers.IntegerField()


class LlmJudgeSerializer(serializers.ModelSerializer[LlmJudge]):
    """A chat model with a prompt that judges free-text answers."""

    target: Any = serializers.CharField(source="target.name")
    agreement = serializers.SerializerMethodField()

    class Meta:
        model = LlmJudge
        fields = read_only_fields = (
            *("id", "name", "target", "prompt", "most_calls", "state", "error", "agreement"),
        )

    @extend_schema_field(AgreementSerializer)
    def get_agreement(self, judge: LlmJudge) -> dict[str, Any]:
        return _describe_agreement(read_calibration(judge))


class LlmScoreSerializer(serializers.Serializer[Any]):
    """The share of a model's answers to a set that a judge finds correct.

    It does not affect ranks.
    """

    judge = serializers.CharField()
    evaluation_set = serializers.CharField()
    version = serializers.IntegerField()
    value = serializers.FloatField(help_text="The share that it finds correct, 0-1.")
    low = serializers.FloatField()
    high = serializers.FloatField()
    n = serializers.IntegerField()
    agreement = AgreementSerializer(help_text="The judge's with people.")


def _describe_agreement(agreement: Agreement) -> dict[str, Any]:
    return {**agreement._asdict(), "is_calibrated": agreement.is_calibrated}


def _describe_score(score: LlmScore, agreement: Agreement) -> dict[str, Any]:
    version = score.run.version
    score_values = {name: getattr(score, name) for name in ("value", "low", "high", "n")}
    return {
        "judge": score.judge.name,
        "evaluation_set": version.evaluation_set.name,
        "version": version.version,
        **score_values,
        "agreement": _describe_agreement(agreement),
    }


@extend_schema_view(get=extend_schema(operation_id="llm_judges_list"))
class LlmJudges(generics.ListAPIView[LlmJudge]):
    """List the judges of a task, newest first. Members only."""

    serializer_class = LlmJudgeSerializer
    pagination_class = NewestFirst
    queryset = LlmJudge.objects.none()

    def get_queryset(self) -> QuerySet[LlmJudge]:
        task = find_task(self.request, self.kwargs["code"], can_edit)
        return task.llm_judges.select_related("target")


class ModelLlmScores(APIView):
    is_public = True

    @extend_schema(operation_id="models_llm_scores_list", responses=LlmScoreSerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """List a model's scores by language model judges.

        Each comes with the judge's agreement with people. Scores on sealed sets are listed for the
        task's editors only.
        """
        runs, viewer = find_visible_runs(request, pk)
        # A judge's exact share of right answers would disclose more than rounded scores.
        shown_runs = [run for run in runs if viewer.is_task_owner or not run.version.is_sealed]
        scores = [
            _describe_score(score, agreement) for score, agreement in find_judge_scores(shown_runs)
        ]
        return Response(LlmScoreSerializer(scores, many=True).data)
