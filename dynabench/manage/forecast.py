"""Whether another round of a task is expected to pay, for its owners' page and the API."""

from dataclasses import dataclass
from typing import Any

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from leaderboard.rounds.forecast import (
    MIN_ROUNDS,
    Outlook,
    RateForecast,
    forecast_catch_rate,
    judge_outlook,
)
from tasks.access import find_task
from tasks.models import Round, Task
from tasks.permissions import can_read
from validation.rates.rates import Rate
from validation.statistics.cache import get_all_numbers


@dataclass(frozen=True)
class NextRound:
    """What a task's finished rounds tell about its next one.

    rounds: the number of finished rounds with a catch rate. forecast: None if these are fewer than
    `needed`. noise: the share of examples (0-1) whose label may be wrong; None if it is unknown.
    """

    rounds: int
    needed: int
    forecast: RateForecast | None
    noise: float | None
    outlook: Outlook | None


def forecast_next_round(task: Task) -> NextRound:
    """Forecast the catch rate of the task's next round from its finished rounds.

    At most five queries. A large round counts once its numbers have been counted.
    """
    rounds = list(task.rounds.filter(state__in=Round.FINISHED_STATES).order_by("number"))
    # Counts of a round use its task's configuration, which is here already.
    for round in rounds:
        round.task = task
    results = get_all_numbers(rounds)
    rates, noise = [], None
    for round in rounds:
        numbers = results[round.pk].numbers if round.pk in results else {}
        vmer, accuracy = numbers.get("vmer"), numbers.get("human_accuracy")
        if isinstance(vmer, Rate):
            rates.append(vmer.value)
        # Votes that differ from most others: an upper bound on wrong labels. The last one counts.
        if isinstance(accuracy, Rate):
            noise = 1 - accuracy.value
    forecast = forecast_catch_rate(rates)
    outlook = judge_outlook(forecast, noise) if forecast else None
    return NextRound(len(rates), MIN_ROUNDS, forecast, noise, outlook)


class ForecastIntervalSerializer(serializers.Serializer[Any]):
    """A catch rate (0-1) with the interval that contains the next one in nine of ten cases."""

    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()


class NextRoundSerializer(serializers.Serializer[Any]):
    """What a task's finished rounds tell about its next one."""

    rounds = serializers.IntegerField(help_text="Finished rounds with a catch rate.")
    needed = serializers.IntegerField(help_text="The fewest such rounds for a forecast.")
    forecast = ForecastIntervalSerializer(
        allow_null=True, help_text="The catch rate (vMER) of the next round. null: too few rounds."
    )
    noise = serializers.FloatField(
        allow_null=True, help_text="The share of examples whose label may be wrong. null: unknown."
    )
    outlook = serializers.ChoiceField(
        [(outlook.value, outlook.value) for outlook in Outlook],
        allow_null=True,
        help_text="Whether another round is expected to pay, by comparing forecast and noise.",
    )


class NextRoundView(APIView):
    """The forecast of a task's next round."""

    @extend_schema(operation_id="next_round_get", responses=NextRoundSerializer)
    def get(self, request: Request, code: str) -> Response:
        """Forecast the catch rate of the next round. Members who read labels only."""
        next_round = forecast_next_round(find_task(request, code, can_read))
        return Response(NextRoundSerializer(next_round).data)


urlpatterns = [path("tasks/<slug:code>/next-round/", NextRoundView.as_view(), name="next-round")]
