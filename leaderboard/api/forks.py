"""Forks: weights that people keep under a name."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.accounts.api import write
from core.accounts.models import ApiToken
from core.accounts.people import get_person, get_public_name
from core.errors import Refused
from core.web.api import read
from core.web.form_fields import build_request_field
from leaderboard import models
from leaderboard.board.forks import services
from leaderboard.board.forks.views import ForkForm
from leaderboard.board.opening import find_start_weights
from leaderboard.ranking.weights import (
    MAX_WEIGHT,
    METRIC_PREFIX,
    SET_PREFIX,
    Weighting,
    WeightsError,
    check_weight_names,
)
from tasks.access import find_task, require_permission
from tasks.permissions import can_edit


class Fork(serializers.ModelSerializer[models.Weights]):
    """Named weights; the board at `?fork=name` opens with them."""

    sets = serializers.DictField(source="evaluation_sets", child=serializers.FloatField())
    metrics = serializers.DictField(child=serializers.FloatField())
    by = serializers.SerializerMethodField(help_text="A pseudonym.")

    class Meta:
        model = models.Weights
        fields = ("name", "description", "metrics", "sets", "by", "made_at")

    def get_by(self, fork: models.Weights) -> str:
        return get_public_name(fork.owner)


def _build_weights_field() -> serializers.DictField:
    return serializers.DictField(
        child=serializers.FloatField(min_value=0, max_value=MAX_WEIGHT),
        required=False,
        default=dict,
    )


class NewFork(serializers.Serializer[Any]):
    """Weights to save; those left out keep the task owner's values."""

    name = build_request_field(
        ForkForm, "name", help_text="Lowercase letters, numbers, hyphens: speed-first"
    )
    description = build_request_field(ForkForm, "description")
    metrics = _build_weights_field()
    sets = _build_weights_field()


@extend_schema_view(
    get=extend_schema(operation_id="forks_list", description="Weights of all metrics.")
)
class Forks(generics.ListAPIView[models.Weights]):
    """The named weights of a task."""

    is_public = True
    write_scope = ApiToken.Scope.SUBMIT
    serializer_class = Fork
    queryset = models.Weights.objects.none()

    def get_queryset(self):  # type: ignore[no-untyped-def]
        task = find_task(self.request, self.kwargs["code"])
        return task.forks.select_related("owner__annotator")

    @write("forks_create", NewFork, {201: Fork})
    def post(self, request: Request, code: str) -> Response:
        """Save weights under a name, replacing your own weights of the same name."""
        from leaderboard.board.matrix import read_matrix

        task = find_task(request, code)
        fields: dict[str, Any] = read(NewFork, request)
        weighting_fields = fields.pop("metrics"), fields.pop("sets")
        start = find_start_weights(task, read_matrix(task), None)
        try:
            weighting = _override_weighting(*weighting_fields, start)
            fork = services.save_weights(
                task=task, owner=get_person(request), weighting=weighting, **fields
            )
        except WeightsError as error:
            field = "sets" if error.fields[0].startswith(SET_PREFIX) else "metrics"
            raise Refused(str(error), code="weights", status=422, field=field) from None
        return Response(Fork(fork).data, status.HTTP_201_CREATED)


def _override_weighting(
    metrics: Mapping[str, float], sets: Mapping[str, float], start: Weighting
) -> Weighting:
    """Return the board's opening weights, overridden by those requested. Raises WeightsError."""
    fields = [METRIC_PREFIX + name for name in metrics]
    fields += [SET_PREFIX + name for name in sets]
    check_weight_names(fields, start)
    return Weighting({**start.metrics, **metrics}, {**start.sets, **sets})


class ForkView(APIView):
    write_scope = ApiToken.Scope.SUBMIT

    @write("forks_delete", gives={204: None})
    def delete(self, request: Request, code: str, name: str) -> Response:
        """Delete your own named weights; editors of the task can delete anybody's."""
        task, user = find_task(request, code), get_person(request)
        fork = generics.get_object_or_404(task.forks, name=name)
        if fork.owner_id != user.pk:
            require_permission(user, task, can_edit)
        services.delete_weights(weights=fork, actor=user)
        return Response(status=status.HTTP_204_NO_CONTENT)
