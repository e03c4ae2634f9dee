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

from core.web.api import versioned
from tasks.access import find_task
from tasks.models import Round, Task
from tasks.selectors import find_known_rounds
from validation.rates.terms import TERMS
from validation.statistics.cache import read_cached_report


class Counting(APIException):
    """Raised while a large round is counted for the first time."""

    status_code = 503
    default_detail = "The numbers are being counted. Ask again in a minute."
    default_code = "counting"
    wait = 60


class RateSerializer(serializers.Serializer[Any]):
    """A share with its 95 % interval."""

    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    n = serializers.IntegerField(help_text="Its denominator.")
    method = serializers.CharField(help_text="How the interval was found.")


def _rate() -> RateSerializer:
    return RateSerializer(allow_null=True)


def _count(word: str, *, allow_null: bool = False) -> Any:
    """Build the field of a count, with its name and description from the pages."""
    title, meaning = TERMS[word]
    return serializers.IntegerField(allow_null=allow_null, help_text=f"{title}: {meaning}")


class NumbersSerializer(serializers.Serializer[Any]):
    """The statistics of a round; docs/statistics.md defines them. `notes` explains null values."""

    round = serializers.IntegerField(allow_null=True, help_text="null: all rounds together.")
    collected = _count("tries")
    fooled = _count("fooled", allow_null=True)
    judged = _count("judged")
    decided = _count("decided")
    verified = _count("confirmed")
    verified_fooled = _count("catches", allow_null=True)
    mer = _rate()
    vmer = _rate()
    fooled_of_decided = _rate()
    consensus_labels = serializers.DictField(child=serializers.IntegerField())
    majority_share = _rate()
    unanimous_share = _rate()
    fleiss_kappa = serializers.FloatField(allow_null=True)
    krippendorff_alpha = serializers.FloatField(allow_null=True)
    validators: Any = serializers.IntegerField()
    authors = serializers.IntegerField(allow_null=True)
    votes = serializers.IntegerField()
    notes = serializers.DictField(child=serializers.CharField())
    human_accuracy = _rate()
    model_accuracy = _rate()
    human_model_gap = _rate()
    program_examples = serializers.IntegerField(help_text="Written by programs, counted nowhere.")
    program_votes = serializers.IntegerField(help_text="Of programs on what people wrote.")


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

        The same numbers as `manage.py task_report --json` prints.
        """
        task = find_task(request, code)
        return _report(request, task, find_known_rounds(task, planned=False).order_by("number"))


class RoundStatistics(APIView):
    is_public = True

    @extend_schema(operation_id="round_statistics_get", responses=StatisticsSerializer)
    def get(self, request: Request, code: str, number: int) -> Response:
        """Return the statistics of one round."""
        task = find_task(request, code)
        round = get_object_or_404(find_known_rounds(task, planned=False), number=number)
        return _report(request, task, [round])


def _report(request: Request, task: Task, rounds: Iterable[Round]) -> Response:
    """Return the last computed report; `Last-Modified` is the time of its computation."""
    report = read_cached_report(list(rounds), code=task.code)
    if report is None:
        raise Counting
    response = versioned(request, json.dumps(report.numbers), lambda: report.numbers)
    response["Last-Modified"] = http_date(report.counted_at.timestamp())
    return response
