"""API views of a task's ruler: choose its anchors, read its state, retire it."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.web.api import read
from core.web.form_fields import build_request_field
from evaluation.models import Ruler
from evaluation.runs.rulers.forms import RulerForm
from evaluation.runs.rulers.selectors import find_ruler, list_lacking_models, list_links
from evaluation.runs.rulers.services import request_anchor_runs, request_ruler, retire_ruler
from tasks.access import find_task, find_task_and_editor
from tasks.models import Task
from tasks.permissions import can_own


class NewRulerSerializer(serializers.Serializer[Any]):
    """How many anchors a new ruler has, and the seed that draws half of them."""

    anchors = build_request_field(RulerForm, "anchors", required=False)
    seed = build_request_field(RulerForm, "seed", required=False)


class LinkedSetSerializer(serializers.Serializer[Any]):
    """A set on which scores are expected, once enough models on the ruler have run it."""

    evaluation_set = serializers.CharField(source="version.evaluation_set.name")
    version = serializers.IntegerField(source="version.version")
    models = serializers.IntegerField(source="model_count", help_text="That are on the ruler.")
    is_linked = serializers.BooleanField()


class LackingModelSerializer(serializers.Serializer[Any]):
    """A model without answers to all anchors."""

    id = serializers.UUIDField(source="model.pk")
    name = serializers.CharField(source="model.name")
    missing = serializers.ListField(child=serializers.CharField(), help_text="Evaluation sets.")
    can_request = serializers.BooleanField(help_text="Whether runs of it can be requested.")


class RulerSerializer(serializers.ModelSerializer[Ruler]):
    """A task's ruler: how its anchors were chosen, the sets on it, and the models that lack."""

    error = serializers.CharField(help_text="Why no anchors could be chosen.")
    teachers = serializers.SerializerMethodField(help_text="Models that decided the anchors.")
    models = serializers.SerializerMethodField(help_text="How many are on the ruler.")
    links = serializers.SerializerMethodField()
    lacking = serializers.SerializerMethodField()

    class Meta:
        model = Ruler
        fields = (
            *("version", "state", "error", "anchor_count", "seed", "queued_at", "finished_at"),
            *("teachers", "models", "links", "lacking"),
        )

    def get_teachers(self, ruler: Ruler) -> int:
        """Return how many models' answers decided which rows became anchors."""
        return ruler.teachers.count()

    def get_models(self, ruler: Ruler) -> int:
        """Return how many models are on the ruler."""
        return ruler.standings.count()

    @extend_schema_field(LinkedSetSerializer(many=True))
    def get_links(self, ruler: Ruler) -> Any:
        """Return the sets."""
        return LinkedSetSerializer(list_links(ruler), many=True).data

    @extend_schema_field(LackingModelSerializer(many=True))
    def get_lacking(self, ruler: Ruler) -> Any:
        """Return the models."""
        return LackingModelSerializer(list_lacking_models(ruler), many=True).data


def _find_serving(task: Task) -> Ruler:
    ruler = find_ruler(task)
    if ruler is None:
        raise Http404
    return ruler


class RulerView(APIView):
    write_scope = ApiToken.Scope.OWN

    @extend_schema(operation_id="ruler_get", responses=RulerSerializer)
    def get(self, request: Request, code: str) -> Response:
        """Get the task's ruler. Task editors only; 404 before one is chosen."""
        task, _editor = find_task_and_editor(request, code)
        return Response(RulerSerializer(_find_serving(task)).data)

    @write("ruler_create", NewRulerSerializer, {202: RulerSerializer})
    def post(self, request: Request, code: str) -> Response:
        """Have a worker choose the anchors of a new ruler. Task owners only.

        Refused if a ruler serves, or if there are too few models or examples.
        """
        task = find_task(request, code, can_own)
        values = read(NewRulerSerializer, request)
        ruler = request_ruler(task=task, actor=get_person(request), **values)
        # A worker may have begun.
        ruler.refresh_from_db()
        return Response(RulerSerializer(ruler).data, status.HTTP_202_ACCEPTED)

    @write("ruler_retire", None, {204: None})
    def delete(self, request: Request, code: str) -> Response:
        """Retire the ruler, which ends the protection of its anchors. Task owners only."""
        ruler = _find_serving(find_task(request, code, can_own))
        retire_ruler(ruler=ruler, actor=get_person(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class RulerRunsSerializer(serializers.Serializer[Any]):
    """How many runs were requested."""

    requested = serializers.IntegerField()


class RulerRuns(APIView):
    write_scope = ApiToken.Scope.OWN
    throttle = "submit"

    @write("ruler_runs_request", None, RulerRunsSerializer)
    def post(self, request: Request, code: str) -> Response:
        """Request the runs that models need to be on the ruler. Task editors only."""
        task, editor = find_task_and_editor(request, code)
        runs = request_anchor_runs(ruler=_find_serving(task), actor=editor)
        return Response(RulerRunsSerializer({"requested": len(runs)}).data)
