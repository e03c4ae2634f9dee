"""API views of training runs for a task's next target: requests, progress, reports and use."""

import re
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken, User
from core.web.api import NewestFirst, read
from core.web.form_fields import build_request_field
from evaluation.models import TrainingRun
from evaluation.training.forms import TrainingForm
from evaluation.training.services import (
    MAX_WEIGHT,
    find_bases,
    find_default_base,
    find_free_name,
    register_trained_target,
    request_training,
)
from tasks.access import find_task_and_editor
from tasks.models import Task
from validation.api.statistics import RateSerializer

SOURCE_PATTERN = re.compile(r"seed|(round|rows)[0-9]{1,9}")
MAX_INTEGER = 2**31 - 1


class SourceWeightsField(serializers.DictField):
    """A field with the number of times that an epoch shows a row, by the row's source."""

    child = serializers.FloatField(min_value=0, max_value=MAX_WEIGHT)

    def to_internal_value(self, data: Any) -> dict[str, float]:
        if isinstance(data, dict) and not all(map(SOURCE_PATTERN.fullmatch, map(str, data))):
            raise serializers.ValidationError(
                "A source is seed, round1, round2 …, or rows and a training's number."
            )
        weights = super().to_internal_value(data)
        # A weight of 0 excludes a source, as in the form.
        return {name: weight for name, weight in weights.items() if weight}


class NewTrainingSerializer(serializers.Serializer[Any]):
    """The training data and the starting point of the next target."""

    weights = SourceWeightsField(
        help_text="By source: seed, round1 …; how often an epoch sees a row of it. Only these are "
        "trained on."
    )
    base = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="A target's name; null: the encoder of the starter models. Unless told: the "
        "current target, where its files are here.",
    )
    seed = build_request_field(TrainingForm, "seed")
    epochs = build_request_field(TrainingForm, "epochs", help_text="At most.")


class TrainingSourceSerializer(serializers.Serializer[Any]):
    """A source of rows on which the model was trained or tested."""

    name = serializers.CharField()
    dataset = serializers.CharField(
        allow_null=True, help_text="Or the uploaded file; null: shipped."
    )
    weight = serializers.FloatField(allow_null=True, help_text="null: tested on only.")
    train = serializers.IntegerField()
    dev = serializers.IntegerField()
    test = serializers.IntegerField()
    left_out = serializers.IntegerField()


class TrainingCurveSerializer(serializers.Serializer[Any]):
    """The best epoch of a training run, and the metrics of each epoch."""

    best_epoch = serializers.IntegerField(help_text="The one that is kept, from 1.")
    curve = serializers.ListField(
        child=serializers.DictField(child=serializers.FloatField()),
        help_text="Loss and dev scores of each epoch.",
    )


class FixedExampleSerializer(serializers.Serializer[Any]):
    """An example that only the new model got right."""

    inputs = serializers.DictField()
    expected = serializers.CharField()
    before = serializers.CharField()
    after = serializers.CharField()


class TrainingTestSerializer(serializers.Serializer[Any]):
    """A comparison of the old and the new model on one test.

    If there is no old model, all values that need one are null.
    """

    name = serializers.CharField()
    before = RateSerializer(allow_null=True)
    after = RateSerializer()
    mended = serializers.IntegerField(allow_null=True, help_text="Only the new one is right.")
    broken = serializers.IntegerField(allow_null=True, help_text="Only the old one is right.")
    p = serializers.FloatField(allow_null=True, help_text="McNemar's exact test.")
    examples = FixedExampleSerializer(many=True, help_text="The first 50 that are mended.")


class TrainingReportSerializer(serializers.Serializer[Any]):
    """The report of a training run."""

    labels = serializers.ListField(child=serializers.CharField(), allow_null=True)
    base = serializers.CharField()
    seed = serializers.IntegerField()
    old = serializers.CharField(allow_null=True, help_text="The target it is compared with.")
    old_missing = serializers.CharField(help_text="Why there are no numbers of it.")
    sources = TrainingSourceSerializer(many=True)
    training = TrainingCurveSerializer()
    tests = TrainingTestSerializer(many=True)


class TrainingSerializer(serializers.ModelSerializer[TrainingRun]):
    """A training run and its progress."""

    progress = serializers.FloatField(help_text="0-1.")
    message = serializers.CharField(help_text="What is done now.")
    error = serializers.CharField(help_text="Why it failed.")
    weights = serializers.DictField(child=serializers.FloatField(), source="options.weights")
    target = serializers.CharField(
        source="target.name", default=None, allow_null=True, help_text="That it became."
    )
    round: Any = serializers.IntegerField(
        source="round.number", default=None, allow_null=True, help_text="Of that target."
    )

    class Meta:
        model = TrainingRun
        fields: tuple[str, ...] = (
            *("id", "state", "progress", "message", "error", "weights", "target", "round"),
            *("queued_at", "started_at", "finished_at"),
        )


class WholeTrainingSerializer(TrainingSerializer):
    """A training run with its report."""

    report = serializers.SerializerMethodField(help_text="null: it is not done.")

    class Meta(TrainingSerializer.Meta):
        fields = (*TrainingSerializer.Meta.fields, "report")

    @extend_schema_field(TrainingReportSerializer(allow_null=True))
    def get_report(self, run: TrainingRun) -> Any:
        return TrainingReportSerializer(run.report).data if run.report else None


@extend_schema_view(get=extend_schema(operation_id="trainings_list"))
class Trainings(generics.ListAPIView[TrainingRun]):
    """List all training runs of a task, newest first. Task editors only."""

    write_scope = ApiToken.Scope.OWN
    throttle = "submit"
    serializer_class = TrainingSerializer
    pagination_class = NewestFirst
    queryset = TrainingRun.objects.none()

    def get_queryset(self) -> QuerySet[TrainingRun]:
        task, _ = find_task_and_editor(self.request, self.kwargs["code"])
        return task.training_runs.defer("report").select_related("target", "round")

    @write("trainings_create", NewTrainingSerializer, {202: TrainingSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Train the next target. A task can have only one training run at a time.

        Get the training run again to see its progress. Task editors only.
        """
        task, editor = find_task_and_editor(request, code)
        fields = read(NewTrainingSerializer, request)
        fields["base"], fields["revision"] = _find_base(task, fields)
        run = request_training(task=task, actor=editor, **fields)
        # A worker may have started it.
        run.refresh_from_db()
        return Response(TrainingSerializer(run).data, status.HTTP_202_ACCEPTED)


def _find_base(task: Task, fields: dict[str, Any]) -> tuple[str, str]:
    """Return (source, revision) of the model from which training starts. Raises ValidationError."""
    if "base" not in fields:
        return find_default_base(task)
    # Two empty strings mean the encoder of the starters.
    if fields["base"] is None:
        return "", ""
    targets = {target.name: target for target in find_bases(task)}
    target = targets.get(fields["base"])
    if target is None:
        names = ", ".join(targets) or "none"
        message = f"No target of that name has its files here. There are: {names}."
        raise serializers.ValidationError({"base": [message]})
    return target.source, target.revision


class TrainingBaseView(APIView):
    """Base view of one training run."""

    write_scope = ApiToken.Scope.OWN

    def find_training(self, code: str, pk: int) -> tuple[TrainingRun, User]:
        """Return the training run and the editor who requests it.

        Raises Http404 for people who are not editors of the task.
        """
        task, editor = find_task_and_editor(self.request, code)
        runs = task.training_runs.select_related("target", "round")
        return get_object_or_404(runs, pk=pk), editor


class TrainingView(TrainingBaseView):
    @extend_schema(operation_id="trainings_get", responses=WholeTrainingSerializer)
    def get(self, request: Request, code: str, pk: int) -> Response:
        """Get a training run's progress and report. Task editors only."""
        return Response(WholeTrainingSerializer(self.find_training(code, pk)[0]).data)


class NewTargetSerializer(serializers.Serializer[Any]):
    """The round that receives the trained model, and the target's name."""

    round = serializers.IntegerField(
        min_value=0,
        max_value=MAX_INTEGER,
        help_text="One that has not been opened, or the next number, for a new draft.",
    )
    name = serializers.SlugField(
        max_length=60, required=False, help_text="Default: named after the task and the round."
    )


class TrainedTarget(TrainingBaseView):
    @write("trainings_register", NewTargetSerializer, WholeTrainingSerializer)
    def post(self, request: Request, code: str, pk: int) -> Response:
        """Make the trained model a target of a round. Task editors only."""
        run, editor = self.find_training(code, pk)
        fields = read(NewTargetSerializer, request)
        number = fields["round"]
        name = fields.get("name") or find_free_name(run.task, number)
        register_trained_target(run=run, number=number, name=name, actor=editor)
        return Response(WholeTrainingSerializer(self.find_training(code, pk)[0]).data)
