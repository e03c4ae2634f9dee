"""The API's addresses of a mixed round: its shares, and what each arm has brought.

It calls the services of the pages, so the same rules apply.
"""

from typing import Any

from django.shortcuts import get_object_or_404
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person
from core.web.api import read
from core.web.form_fields import build_request_field
from dynabench.adversaries.fit import can_run_adversaries
from dynabench.failures.api import ErrorRateSerializer, build_rate_record
from dynabench.mixed_rounds import services
from dynabench.mixed_rounds.forms import SharesForm
from dynabench.mixed_rounds.selectors import ArmResult, measure_arms
from tasks.access import find_task
from tasks.arms import ARMS
from tasks.models import Round


class ArmSharesSerializer(serializers.Serializer[Any]):
    """The parts of each arm of a round. The same numbers mean the same shares."""

    people = build_request_field(SharesForm, "people")
    helped = build_request_field(SharesForm, "helped")
    drafts = build_request_field(SharesForm, "drafts")
    machines = build_request_field(SharesForm, "machines")


class ArmResultSerializer(serializers.Serializer[Any]):
    """What an arm of a round has brought."""

    arm = serializers.ChoiceField(ARMS)
    share = serializers.FloatField(allow_null=True, help_text="Of all texts (0-1).")
    texts = serializers.IntegerField(
        allow_null=True, help_text="How often it was drawn for a text. null: machines."
    )
    tries = serializers.IntegerField()
    catches = serializers.IntegerField()
    fooling_rate = ErrorRateSerializer(allow_null=True, help_text="MER, unweighted.")
    error_rate = ErrorRateSerializer(
        allow_null=True, help_text="vMER, validated by people, unweighted."
    )
    edit_distance = serializers.FloatField(
        allow_null=True, help_text="Median of the changed characters of drafts."
    )


class MixedRoundSerializer(serializers.Serializer[Any]):
    """The shares of a round's arms with their results."""

    shares = ArmSharesSerializer(allow_null=True, help_text="null: people are in no arm.")
    arms = ArmResultSerializer(many=True)


def build_mixed_round_record(round: Round) -> dict[str, Any]:
    """Return a round's shares and results as the API has them."""
    return {
        "shares": round.arm_shares,
        "arms": [_build_arm_record(result) for result in measure_arms(round)],
    }


def _build_arm_record(result: ArmResult) -> dict[str, Any]:
    return {
        "arm": result.arm,
        "share": result.share,
        "texts": result.texts,
        "tries": result.tries,
        "catches": result.catches,
        "fooling_rate": build_rate_record(result.fooling_rate),
        "error_rate": build_rate_record(result.error_rate),
        "edit_distance": result.edit_distance,
    }


class _MixedRoundAPIView(APIView):
    """Base view of a mixed round, for the task's editors who may read labels."""

    write_scope = ApiToken.Scope.OWN

    def find_round(self) -> Round:
        """Return the round in the address. Raises Http404 and PermissionDenied."""
        task = find_task(self.request, self.kwargs["code"], can_run_adversaries)
        return get_object_or_404(task.rounds.select_related("task"), number=self.kwargs["number"])


class MixedRoundView(_MixedRoundAPIView):
    """The arms of a round."""

    @extend_schema(operation_id="mixed_rounds_get", responses=MixedRoundSerializer)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Return a round's shares and results. Editors who may read labels only."""
        return self._respond(self.find_round())

    @write("mixed_rounds_set", ArmSharesSerializer, MixedRoundSerializer)
    def put(self, request: Request, code: str, number: int) -> Response:
        """Set the shares of a round. They apply to people's next texts."""
        round, shares = self.find_round(), read(ArmSharesSerializer, request)
        actor = get_person(request)
        return self._respond(services.set_arm_shares(round=round, actor=actor, shares=shares))

    @write("mixed_rounds_end", None, {200: MixedRoundSerializer})
    def delete(self, request: Request, code: str, number: int) -> Response:
        """Assign no more arms in a round."""
        round = services.end_mixing(round=self.find_round(), actor=get_person(request))
        return self._respond(round)

    def _respond(self, round: Round) -> Response:
        return Response(MixedRoundSerializer(build_mixed_round_record(round)).data)


class MixedRoundStart(_MixedRoundAPIView):
    """The start of a mixed round in an official task."""

    @write("mixed_rounds_start", None, MixedRoundSerializer)
    def post(self, request: Request, code: str, number: int) -> Response:
        """Start an official task's ready adversaries, and give all possible arms a share."""
        round = services.start_mixed_round(round=self.find_round(), actor=get_person(request))
        return Response(MixedRoundSerializer(build_mixed_round_record(round)).data)


urlpatterns = [
    path(
        "tasks/<slug:code>/rounds/<int:number>/arms/", MixedRoundView.as_view(), name="round-arms"
    ),
    path(
        "tasks/<slug:code>/rounds/<int:number>/arms/start/",
        MixedRoundStart.as_view(),
        name="round-arms-start",
    ),
]
