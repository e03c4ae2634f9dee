"""Forecast the catch rate of the next round, and whether such a round is expected to pay.

The next rate is the last one, give or take as much as the rates have changed from round to round.
Simulated rounds of `leaderboard.rounds.treadmill` check how often this holds
(`python -m leaderboard.forecast`). docs/statistics.md has the formula in "The next round's catch
rate".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import sqrt

from validation.rates.rates import compute_student_quantile

MIN_ROUNDS = 4
"""The fewest rounds with a catch rate: with three, two changes would decide the whole interval."""
CONFIDENCE = 0.9


class Outlook(StrEnum):
    """Whether another round is expected to pay."""

    PAYS = "pays"  # it finds more errors than labels may be wrong
    UNCLEAR = "unclear"
    NOISE = "noise"  # as many labels may be wrong as errors are found


@dataclass(frozen=True)
class RateForecast:
    """The catch rate (0-1) that the next round is expected to find, with a 90% interval.

    rounds: the number of rounds that it is based on.
    """

    value: float
    low: float
    high: float
    rounds: int


def forecast_catch_rate(rates: Sequence[float]) -> RateForecast | None:
    """Forecast the rate that the next round measures; None for fewer than MIN_ROUNDS.

    rates: the catch rates (0-1) of finished rounds in order. The forecast is for a round of about
    their size.

    A random walk without drift (Hyndman and Athanasopoulos 2021, 5.2 and 5.5), with Student's
    quantile, because few changes estimate how far a rate moves.
    """
    if len(rates) < MIN_ROUNDS:
        return None
    # Around 0 and not around their mean: a trend over few rounds seldom goes on.
    changes = [later - earlier for earlier, later in pairwise(rates)]
    typical_change = sqrt(sum(change**2 for change in changes) / len(changes))
    half_width = compute_student_quantile(len(changes), CONFIDENCE) * typical_change
    last_rate = rates[-1]
    return RateForecast(
        last_rate, max(0.0, last_rate - half_width), min(1.0, last_rate + half_width), len(rates)
    )


def judge_outlook(forecast: RateForecast, noise: float | None) -> Outlook:
    """Return whether the next round is expected to find more errors than wrong labels.

    noise: the share of examples (0-1) whose label may be wrong; None if it is unknown. At that
    rate people mostly find wrong labels, and rounds stall (Shirali, Abebe and Hardt 2023).
    """
    if noise is None:
        return Outlook.UNCLEAR
    if forecast.low > noise:
        return Outlook.PAYS
    return Outlook.NOISE if forecast.high <= noise else Outlook.UNCLEAR
