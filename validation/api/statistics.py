"""The API's views of a task's numbers."""

import json
from collections.abc import Iterable
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils.http import http_date
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.web.api import respond_with_version
from tasks.access import find_task
from tasks.models import Round, Task
from tasks.selectors import find_visible_rounds
from validation.rates.terms import TERMS
from validation.statistics.cache import read_cached_report


class CountingInProgress(APIException):
    """Raised while a large round is counted for the first time."""

    status_code = 503
    default_detail = "The numbers are being counted. Ask again in a minute."
    default_code = "counting"
    wait = 60


class RateSerializer(serializers.Serializer[Any]):
    """A share with its 95% interval."""

    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    n = serializers.IntegerField(help_text="Its denominator.")
    method = serializers.CharField(
        help_text="How the interval was found. hajek: the share is weighted for how contexts came. "
        "judge-model: estimated from a sample with the help of a judge model; then n counts what "
        "people judged."
    )


def _build_rate_field() -> RateSerializer:
    return RateSerializer(allow_null=True)


def _build_count_field(word: str, *, allow_null: bool = False) -> Any:
    """Build the field of a count, with its name and description from the pages."""
    title, meaning = TERMS[word]
    return serializers.IntegerField(allow_null=allow_null, help_text=f"{title}: {meaning}")


class NumbersSerializer(serializers.Serializer[Any]):
    """The statistics of a round; docs/statistics.md defines them. `notes` explains null values."""

    round = serializers.IntegerField(allow_null=True, help_text="null: all rounds together.")
    collected = _build_count_field("tries")
    fooled = _build_count_field("fooled", allow_null=True)
    judged = _build_count_field("judged")
    decided = _build_count_field("decided")
    verified = _build_count_field("confirmed")
    verified_fooled = _build_count_field("catches", allow_null=True)
    mer = _build_rate_field()
    vmer = _build_rate_field()
    fooled_of_decided = _build_rate_field()
    consensus_labels = serializers.DictField(child=serializers.IntegerField())
    majority_share = _build_rate_field()
    unanimous_share = _build_rate_field()
    fleiss_kappa = serializers.FloatField(allow_null=True)
    krippendorff_alpha = serializers.FloatField(allow_null=True)
    validators: Any = serializers.IntegerField()
    authors = serializers.IntegerField(allow_null=True)
    votes = serializers.IntegerField()
    notes = serializers.DictField(child=serializers.CharField())
    human_accuracy = _build_rate_field()
    model_accuracy = _build_rate_field()
    human_model_gap = _build_rate_field()
    program_examples = serializers.IntegerField(help_text="Written by programs, counted nowhere.")
    program_votes = serializers.IntegerField(help_text="Of programs on what people wrote.")
    steps_judged = serializers.IntegerField(
        required=False, help_text="Steps with votes, where the task asks about steps."
    )
    steps_decided = serializers.IntegerField(required=False)
    step_votes = serializers.IntegerField(required=False)
    step_unanimous_share = RateSerializer(required=False, allow_null=True)
    step_krippendorff_alpha = serializers.FloatField(required=False, allow_null=True)
    criteria_judged = serializers.IntegerField(
        required=False, help_text="Criteria with judgements, where the task has criteria."
    )
    criteria_decided = serializers.IntegerField(
        required=False, help_text="Those that the votes found met or not met."
    )
    criteria_judgements = serializers.IntegerField(required=False)
    criteria_met_share = RateSerializer(required=False, allow_null=True)
    criteria_score = RateSerializer(
        required=False, allow_null=True, help_text="The mean score of answers."
    )
    criteria_unclear_share = RateSerializer(required=False, allow_null=True)
    criteria_author_share = RateSerializer(required=False, allow_null=True)
    criteria_krippendorff_alpha = serializers.FloatField(required=False, allow_null=True)
    sample_drawn = serializers.IntegerField(
        required=False,
        help_text="Examples that people are asked about, where a judge model answers all.",
    )
    sample_left_out = serializers.IntegerField(
        required=False, help_text="Examples that the draw left out."
    )


class StatisticsSerializer(serializers.Serializer[Any]):
    """The statistics by round, and of all these rounds together."""

    task = serializers.CharField()
    rounds = NumbersSerializer(many=True)
    all = NumbersSerializer()


class TaskStatistics(APIView):
    is_public = True

    @extend_schema(operation_id="statistics_get", responses=StatisticsSerializer)
    def get(self, request: Request, code: str) -> Response:
        """Return the statistics of all rounds that have opened.

        They are the numbers that `manage.py task_report --json` prints.
        """
        task = find_task(request, code)
        return _respond_with_report(
            request, task, find_visible_rounds(task, include_planned=False).order_by("number")
        )


class RoundStatistics(APIView):
    is_public = True

    @extend_schema(operation_id="round_statistics_get", responses=StatisticsSerializer)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Return the statistics of one round."""
        task = find_task(request, code)
        round = get_object_or_404(find_visible_rounds(task, include_planned=False), number=number)
        return _respond_with_report(request, task, [round])


def _respond_with_report(request: Request, task: Task, rounds: Iterable[Round]) -> Response:
    """Return the last computed report. `Last-Modified` is the time of its computation.

    Raises CountingInProgress if no report has been computed.
    """
    report = read_cached_report(list(rounds), code=task.code)
    if report is None:
        raise CountingInProgress
    response = respond_with_version(request, json.dumps(report.numbers), lambda: report.numbers)
    response["Last-Modified"] = http_date(report.counted_at.timestamp())
    return response
