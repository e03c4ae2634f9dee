"""The API's address of a model's weak spots."""

from dataclasses import asdict
from typing import Any

from django.http import Http404
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.web.api import check_query
from dynabench.failures.forms import choose_model
from dynabench.failures.selectors import ShownSlice, find_weak_spots, list_searched_models
from tasks.access import find_task
from tasks.permissions import can_read
from validation.rates.rates import Rate, Undefined


class ErrorRateSerializer(serializers.Serializer[Any]):
    """A share of errors with its interval, which is corrected for the number of slices."""

    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    n = serializers.IntegerField(help_text="Texts.")
    clusters = serializers.IntegerField(allow_null=True, help_text="Authors.")


class SliceErrorSerializer(serializers.Serializer[Any]):
    """A confirmed error of a slice."""

    uuid = serializers.UUIDField()
    text = serializers.CharField()


class WeakSpotSerializer(serializers.Serializer[Any]):
    """Texts that are alike, or have a declared value, with the model's errors on them."""

    words = serializers.ListField(
        child=serializers.CharField(), help_text="Those that set the texts apart, in order."
    )
    name = serializers.CharField(help_text="Name of the declared value. Empty: alike in words.")
    value = serializers.CharField()
    error_rate = ErrorRateSerializer(allow_null=True)
    rest_rate = ErrorRateSerializer(allow_null=True, help_text="Of all other texts.")
    p_value = serializers.FloatField(help_text="Corrected for the number of slices.")
    is_clear = serializers.BooleanField(help_text="Whether p_value is below 0.05.")
    examples = SliceErrorSerializer(many=True, help_text="The most typical errors.")


class WeakSpotsSerializer(serializers.Serializer[Any]):
    """What a search found in the texts that people wrote against a model."""

    model = serializers.CharField(allow_null=True, help_text="null: no model was asked yet.")
    models = serializers.ListField(child=serializers.CharField())
    tries = serializers.IntegerField()
    error_count = serializers.IntegerField()
    reason = serializers.CharField(help_text="Why nothing could be searched. Empty: it could.")
    slices = WeakSpotSerializer(many=True)


class WeakSpotsView(APIView):
    """Where a model to fool errs more often than elsewhere."""

    reads_query = ("GET",)

    @extend_schema(
        operation_id="weak_spots",
        responses=WeakSpotsSerializer,
        parameters=[
            OpenApiParameter("model", description="Name of a model. Default: the first by name.")
        ],
    )
    def get(self, request: Request, code: str) -> Response:
        """Return the slices on which a model errs more often. People who may read labels only."""
        task = find_task(request, code, can_read)
        check_query(request, "model")
        models = list_searched_models(task)
        model = choose_model(models, request.query_params)
        requested_name = request.query_params.get("model")
        # A page would fall back to the first model; a program has to learn that it misspelt a name.
        if requested_name and (model is None or model.name != requested_name):
            raise Http404
        body: dict[str, Any] = {
            "model": None,
            "models": [one.name for one in models],
            "tries": 0,
            "error_count": 0,
            "reason": "",
            "slices": [],
        }
        # Without a model there is nothing to search, which is no error.
        if model is not None:
            found = find_weak_spots(task, model)
            body |= {
                "model": model.name,
                "tries": found.search.tries,
                "error_count": found.search.errors,
                "reason": found.search.reason,
                "slices": [build_slice_record(shown) for shown in found.slices],
            }
        return Response(WeakSpotsSerializer(body).data)


def build_slice_record(shown: ShownSlice) -> dict[str, Any]:
    """Return a slice as the API has it."""
    one = shown.slice
    return {
        "words": one.words,
        "name": one.name,
        "value": one.value,
        "error_rate": build_rate_record(one.error_rate),
        "rest_rate": build_rate_record(one.rest_rate),
        "p_value": one.p_value,
        "is_clear": one.is_clear,
        "examples": [error._asdict() for error in shown.errors],
    }


def build_rate_record(rate: Rate | Undefined) -> dict[str, Any] | None:
    """Return a rate's number and interval; None if it is undefined."""
    return asdict(rate) if isinstance(rate, Rate) else None


urlpatterns = [path("tasks/<slug:code>/weak-spots/", WeakSpotsView.as_view(), name="weak-spots")]
