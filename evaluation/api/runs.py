"""API views of a model's evaluation runs, scores, wrong answers and predictions."""

import gzip
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID

import orjson
from django.db.models import QuerySet
from django.http import Http404, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.web.api import JSON_LINES_RESPONSE, read_query
from core.web.downloads import respond_with_lines
from evaluation.api.models import NewestFirstPages
from evaluation.models import EvaluationRun, Score, WholeRoundScore
from evaluation.runs.selectors import filter_counting_runs
from evaluation.runs.services import estimate_wait_seconds, find_queue_positions, repeat_run
from evaluation.runs.whole_rounds import find_shown_whole_rounds
from evaluation.submissions.visibility import (
    Viewer,
    find_run,
    find_submission,
    find_visible_runs,
    hide_model_output,
    may_see_wrong_answers,
)
from evaluation.test_sets.seen_in_training import compute_seen_share, find_training_sources
from evaluation.test_sets.shown_scores import (
    build_readable_condition,
    find_scores_by_part,
    find_sealed_versions,
    round_stored_score,
    set_part_sizes,
)

if TYPE_CHECKING:  # it loads numpy
    from evaluation.submissions.mistakes import WrongAnswer

ID_PARAMETER = OpenApiParameter("id", OpenApiTypes.UUID, "path", description="The model's.")


class UsageSerializer(serializers.Serializer[Any]):
    """The resources that a run used. Values that were not measured are null."""

    seconds = serializers.FloatField(allow_null=True, default=None)
    start_seconds = serializers.FloatField(
        allow_null=True, default=None, help_text="Until the first answer."
    )
    answer_seconds = serializers.FloatField(allow_null=True, default=None)
    examples_per_second = serializers.FloatField(allow_null=True, default=None)
    cpu_seconds = serializers.FloatField(allow_null=True, default=None)
    peak_bytes = serializers.IntegerField(allow_null=True, default=None)
    mean_bytes = serializers.IntegerField(allow_null=True, default=None)
    answers = serializers.IntegerField(allow_null=True, default=None)
    tokens_in = serializers.IntegerField(allow_null=True, default=None, help_text="Of prompts.")
    tokens_out = serializers.IntegerField(allow_null=True, default=None, help_text="Of answers.")
    cost = serializers.FloatField(
        allow_null=True, default=None, help_text="In the currency of its owner's prices."
    )
    latency_seconds = serializers.FloatField(
        allow_null=True, default=None, help_text="Of one call; the median."
    )
    latency_p95_seconds = serializers.FloatField(allow_null=True, default=None)
    unanswered = serializers.DictField(
        child=serializers.IntegerField(),
        allow_null=True,
        default=None,
        help_text="Examples without an answer, by the reason; they count as wrong.",
    )


class WholeRoundScoreSerializer(serializers.ModelSerializer[WholeRoundScore]):
    """The estimated share of right answers if people had judged the whole round (0-1)."""

    value = serializers.FloatField(
        allow_null=True, help_text="null: too few of the set's examples were drawn."
    )
    set_share = serializers.FloatField(
        help_text="The share of right answers on the set itself, where each example counts once."
    )
    judged = serializers.IntegerField(help_text="Examples about which people were asked.")
    left_out = serializers.IntegerField(help_text="Examples about which they weren't.")

    class Meta:
        model = WholeRoundScore
        fields = ("value", "low", "high", "set_share", "judged", "left_out")


class RunSerializer(serializers.ModelSerializer[EvaluationRun]):
    """An evaluation of a model on a version of a set, plain or perturbed."""

    whole_round = WholeRoundScoreSerializer(
        source="shown_whole_round",
        default=None,
        read_only=True,
        allow_null=True,
        help_text="An estimate, if people judged a sample of the set's round. null: they judged "
        "all, or the set is sealed and you don't edit the task.",
    )

    evaluation_set = serializers.CharField(source="version.evaluation_set.name")
    version = serializers.IntegerField(source="version.version")
    number = serializers.IntegerField(help_text="Higher: repeated.")
    warnings = serializers.ListField(child=serializers.CharField())
    usage = UsageSerializer()
    overlap = serializers.SerializerMethodField(
        help_text="The part of the set (0-1) that the model was trained on; null: not known."
    )
    position = serializers.SerializerMethodField(help_text="In the queue; null: it does not wait.")
    wait_seconds = serializers.SerializerMethodField(help_text="As the last runs took.")

    class Meta:
        model = EvaluationRun
        fields: tuple[str, ...] = (
            *("id", "evaluation_set", "version", "suite", "number", "state", "outcome", "error"),
            *("limit", "measured", "warnings", "message", "progress", "position", "wait_seconds"),
            *("runner", "in_the_loop", "attempts", "queued_at", "started_at", "finished_at"),
            *("usage", "overlap", "whole_round"),
        )

    def get_overlap(self, run: EvaluationRun) -> float | None:
        """Return the share of the set on which the model was trained; None if unknown."""
        # Once for all runs of a model, because it makes queries.
        if run.submission_id not in self._sources_by_model:
            self._sources_by_model[run.submission_id] = find_training_sources(run.submission)
        return compute_seen_share(run, run.version, self._sources_by_model[run.submission_id])

    @cached_property
    def _sources_by_model(self) -> dict[UUID, set[str] | None]:
        return {}

    def get_position(self, run: EvaluationRun) -> int | None:
        """Return the run's position in the queue; None if it does not wait."""
        if run.state != EvaluationRun.State.QUEUED:
            return None
        return self._positions.get(run.pk)

    def get_wait_seconds(self, run: EvaluationRun) -> float | None:
        """Return the expected wait in seconds; None if unknown or if the run does not wait.

        Computed from the queue position and the durations of recent runs.
        """
        position = self.get_position(run)
        return position * self._mean_wait_seconds if position and self._mean_wait_seconds else None

    @cached_property
    def _positions(self) -> dict[UUID, int]:
        # One query for all runs of a page.
        return find_queue_positions()

    @cached_property
    def _mean_wait_seconds(self) -> float | None:
        return estimate_wait_seconds(1)


class WholeRunSerializer(RunSerializer):
    """An evaluation with the end of its log."""

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "log")


@extend_schema_view(get=extend_schema(operation_id="runs_list", parameters=[ID_PARAMETER]))
class Runs(generics.ListAPIView[EvaluationRun]):
    """List all evaluations of a model, including repeated ones, newest first.

    Evaluations on hidden sets are listed for task owners only.
    """

    is_public = True
    serializer_class = RunSerializer
    pagination_class = NewestFirstPages
    queryset = EvaluationRun.objects.none()

    def get_queryset(self) -> QuerySet[EvaluationRun]:
        runs, self.viewer = find_visible_runs(self.request, self.kwargs["pk"])
        # Logs may be long too, and the list does not contain them.
        return runs.defer("log")

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        """Return a page of runs, each as this person may see it."""
        runs = list(super().paginate_queryset(queryset) or ())
        _attach_whole_rounds(runs, self.viewer)
        return [hide_model_output(run, self.viewer) for run in runs]


def _attach_whole_rounds(runs: Sequence[Any], viewer: Viewer) -> None:
    """Set `shown_whole_round` on the runs that have an estimate that the viewer may see."""
    for score in find_shown_whole_rounds(runs, is_exact=viewer.is_task_owner):
        # A name of its own, because Django's would make a query for each run without one.
        score.run.shown_whole_round = score  # type: ignore[attr-defined]


class RunView(APIView):
    @extend_schema(operation_id="runs_get", responses=WholeRunSerializer)
    def get(self, request: Request, pk: UUID, run: UUID) -> Response:
        """Get an evaluation with the end of its log. Owners of the model or task only."""
        evaluation, viewer = find_run(request, pk, run)
        _attach_whole_rounds([evaluation], viewer)
        return Response(WholeRunSerializer(evaluation).data)


class RepeatRunView(APIView):
    write_scope = ApiToken.Scope.SUBMIT
    throttle = "submit"

    @write("runs_repeat", None, {201: RunSerializer})
    def post(self, request: Request, pk: UUID, run: UUID) -> Response:
        """Repeat a run that failed because of the platform, another server or the cost cap.

        Owners of the model or task only.
        """
        old_run, _ = find_run(request, pk, run, lambda _, viewer: viewer.may_repeat)
        new_run = repeat_run(run=old_run, actor=get_person(request))
        evaluation, _ = find_run(request, pk, new_run.pk)  # with what its serializer reads
        return Response(RunSerializer(evaluation).data, status.HTTP_201_CREATED)


class WrongAnswersQuery(serializers.Serializer[Any]):
    """The query parameters of the wrong answers."""

    page = serializers.IntegerField(min_value=1, max_value=99_999, default=1)


class WrongAnswerSerializer(serializers.Serializer[Any]):
    """An example that a model got wrong or only partly right."""

    uid = serializers.CharField(source="row.uid")
    inputs = serializers.DictField(source="row.inputs")
    answer = serializers.SerializerMethodField(help_text="The model's; null: it gave none.")
    gold = serializers.ListField(
        source="row.gold", child=serializers.JSONField(), help_text="What counts as right."
    )
    score = serializers.FloatField(help_text="How right it is by the task's main metric, 0-1.")

    @extend_schema_field(serializers.JSONField())
    def get_answer(self, wrong_answer: "WrongAnswer") -> Any:
        return wrong_answer.answer.value if wrong_answer.answer else None


class WrongAnswersPageSerializer(serializers.Serializer[Any]):
    """A page of examples that a model got wrong or only partly right."""

    examples = WrongAnswerSerializer(many=True)
    next_page = serializers.IntegerField(allow_null=True)


class WrongAnswersView(APIView):
    is_public = True
    reads_query = ("GET",)
    throttle, throttles_reads = "export", True

    @extend_schema(
        operation_id="runs_wrong",
        parameters=[WrongAnswersQuery],
        responses=WrongAnswersPageSerializer,
    )
    def get(self, request: Request, pk: UUID, run: UUID) -> Response:
        """List the examples of a set that a model got wrong or only partly right, 20 per page.

        Available to everybody if a release has published texts and labels, otherwise to the task's
        editors. Only for plain runs with stored predictions.
        """
        from evaluation.submissions.mistakes import (  # it loads numpy
            PAGE_SIZE,
            find_wrong_answers,
        )

        evaluation, _ = find_run(request, pk, run, may_see_wrong_answers)
        page = read_query(WrongAnswersQuery, request)["page"]
        start = (page - 1) * PAGE_SIZE
        # One more than the page shows, to know whether there is a next page.
        wrong_answers = find_wrong_answers(evaluation, start, start + PAGE_SIZE + 1)
        body = {
            "examples": wrong_answers[:PAGE_SIZE],
            "next_page": page + 1 if len(wrong_answers) > PAGE_SIZE else None,
        }
        return Response(WrongAnswersPageSerializer(body).data)


class ScoreSerializer(serializers.ModelSerializer[Score]):
    """The value of a metric with its 95% interval."""

    evaluation_set = serializers.CharField(source="run.version.evaluation_set.name")
    version = serializers.IntegerField(source="run.version.version")
    is_provisional = serializers.BooleanField(
        source="run.version.is_provisional", help_text="Its round was still judged."
    )
    judged = serializers.IntegerField(source="run.version.judged", allow_null=True)
    to_judge = serializers.IntegerField(source="run.version.to_judge", allow_null=True)
    suite = serializers.ChoiceField(EvaluationRun.Suite.choices, source="run.suite")
    is_rounded = serializers.BooleanField(
        read_only=True,
        help_text="The set is sealed: the value is rounded to a step of about a standard error.",
    )

    class Meta:
        model = Score
        fields = (
            *("run", "evaluation_set", "version", "is_provisional", "judged", "to_judge", "suite"),
            *("metric", "metric_version", "slice", "kind", "value", "low", "high", "n"),
            "is_rounded",
        )


@extend_schema_view(get=extend_schema(operation_id="scores_list", parameters=[ID_PARAMETER]))
class Scores(generics.ListAPIView[Score]):
    """List all scores of a model, on plain and perturbed sets.

    Scores over all examples have an empty `slice` and `kind`. On sealed sets, there are fewer
    scores, and they are rounded.
    """

    is_public = True
    serializer_class = ScoreSerializer
    queryset = Score.objects.none()

    def get_queryset(self) -> QuerySet[Score]:
        runs, viewer = find_visible_runs(self.request, self.kwargs["pk"])
        task = find_submission(self.request, self.kwargs["pk"])[0].task
        self.sealed = set() if viewer.is_task_owner else find_sealed_versions(task)
        counting_runs = filter_counting_runs(runs).values("pk")
        scores = Score.objects.filter(build_readable_condition(self.sealed), run__in=counting_runs)
        whole_scores = scores.select_related("run__version__evaluation_set__task")
        # A run's log and measurements would come once for each of its scores.
        return whole_scores.defer("run__log", "run__measurements")

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        """Return a page of scores. Scores on sealed sets are rounded."""
        page = super().paginate_queryset(queryset) or ()
        scores_by_part = find_scores_by_part({score.run_id for score in page}, self.sealed)
        shown_scores = []
        for score in set_part_sizes(page, scores_by_part):
            if score.run.version_id in self.sealed:
                score = round_stored_score(score)
            shown_scores.append(score)
        return shown_scores


class PredictionsView(APIView):
    is_public = True
    throttle, throttles_reads = "export", True

    @extend_schema(operation_id="predictions_get", responses=JSON_LINES_RESPONSE)
    def get(self, request: Request, pk: UUID, name: str) -> HttpResponseBase:
        """Download a model's answers on a set as lines `{"id", "output", "prob"}`.

        This is the format in which predictions are submitted. Lines include `logprob` and `tokens`
        (read, written) if the model reported them. The output of an unanswered example is null. The
        answers are those on the newest version on which the model ran. Available for sets with
        downloadable inputs; for other sets to the task's editors only.
        """
        visible_runs, viewer = find_visible_runs(request, pk)
        runs = filter_counting_runs(visible_runs).exclude(predictions="")
        # Perturbed runs have answers to other texts.
        plain_runs = runs.filter(
            version__evaluation_set__name=name, suite=EvaluationRun.Suite.PLAIN
        )
        # `find_visible_runs` includes hidden sets only for editors.
        run = plain_runs.order_by("-version__version").first()
        if run is None or not (viewer.is_task_owner or run.version.evaluation_set.may_leave):
            raise Http404
        return respond_with_lines(
            convert_predictions(run), f"{pk}-{name}-v{run.version.version}.jsonl"
        )


def convert_predictions(run: EvaluationRun) -> Iterator[bytes]:
    """Yield the predictions of a run in the submission format."""
    field = run.submission.task.config.answer_field
    with run.predictions.open("rb") as file, gzip.GzipFile(fileobj=file) as rows:
        for row in map(orjson.loads, rows):
            answer = {"id": row["uid"], "output": None}
            if row["answer"] is not None:
                answer["output"] = {field: row["answer"]}
            for name in ("prob", "logprob", "tokens"):
                if name in row:
                    answer[name] = row[name]
            yield orjson.dumps(answer) + b"\n"
