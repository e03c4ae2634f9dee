"""API view of published models whose answers are nearly the same as a given model's."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from evaluation.submissions.near_copies import find_model_near_copies
from evaluation.submissions.visibility import find_visible_runs


class NearCopySerializer(serializers.Serializer[Any]):
    """A published model with nearly the same answers on a set, and counts of examples."""

    evaluation_set = serializers.CharField(source="pair.run.version.evaluation_set.name")
    version = serializers.IntegerField(source="pair.run.version.version")
    model = serializers.UUIDField(source="pair.other.submission_id", help_text="The other one.")
    name = serializers.CharField(source="other_name", help_text="The other one's.")
    n = serializers.IntegerField(source="pair.n")
    equal = serializers.IntegerField(source="pair.equal")
    expected = serializers.FloatField(
        source="pair.expected", help_text="Of two models that know nothing of each other."
    )
    both_wrong = serializers.IntegerField(source="pair.both_wrong")
    equal_wrong = serializers.IntegerField(source="pair.equal_wrong")


class NearCopies(APIView):
    @extend_schema(operation_id="near_copies_list", responses=NearCopySerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """List published models with nearly the same answers. Owners of the model or task only.

        For sealed sets, only the task's editors see them. The list is empty for everybody else.
        """
        runs, viewer = find_visible_runs(request, pk)
        return Response(NearCopySerializer(find_model_near_copies(runs, viewer), many=True).data)
