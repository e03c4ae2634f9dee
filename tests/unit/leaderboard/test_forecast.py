"""The forecast of the next catch rate: its interval, what it concludes, how often it holds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leaderboard.forecast import check_forecasts, main
from leaderboard.rounds.forecast import (
    CONFIDENCE,
    MIN_ROUNDS,
    Outlook,
    RateForecast,
    forecast_catch_rate,
    judge_outlook,
)
from leaderboard.rounds.treadmill import World, simulate_catch_rates, simulate_treadmill

RATES = st.lists(st.floats(0, 1), min_size=MIN_ROUNDS, max_size=12)


def test_a_forecast_is_the_last_rate_and_the_typical_change():
    found = forecast_catch_rate([0.42, 0.35, 0.33, 0.30])
    typical = ((0.07**2 + 0.02**2 + 0.03**2) / 3) ** 0.5
    half_width = stats.t.ppf(0.95, 3) * typical
    assert found.value == 0.3
    assert (found.low, found.high) == pytest.approx((0.3 - half_width, 0.3 + half_width))
    assert found.rounds == 4


def test_too_few_rounds_have_no_forecast():
    assert forecast_catch_rate([0.4] * (MIN_ROUNDS - 1)) is None
    assert forecast_catch_rate([]) is None


@given(RATES)
def test_a_forecast_is_a_share_and_contains_the_last_rate(rates):
    found = forecast_catch_rate(rates)
    assert 0 <= found.low <= found.value == rates[-1] <= found.high <= 1


@given(st.floats(0, 1), st.integers(MIN_ROUNDS, 12))
def test_rounds_that_are_all_alike_leave_no_doubt(rate, rounds):
    found = forecast_catch_rate([rate] * rounds)
    assert found.low == found.high == rate


@pytest.mark.parametrize(
    ("noise", "outlook"),
    [
        (0.05, Outlook.PAYS),
        (0.1, Outlook.UNCLEAR),
        (0.2, Outlook.UNCLEAR),
        (0.3, Outlook.NOISE),
        (0.4, Outlook.NOISE),
        (None, Outlook.UNCLEAR),
    ],
)
def test_a_round_pays_if_it_finds_more_than_wrong_labels(noise, outlook):
    assert judge_outlook(RateForecast(0.2, 0.1, 0.3, 5), noise) == outlook


def test_catches_of_simulated_rounds_are_errors_with_right_labels():
    world = World(0.1, 0.0, "stubborn", 5000)
    rates = simulate_catch_rates(world, 3, seed=4)
    # The first round's model is the path's, and all of its errors are catches without noise.
    assert rates[0] == pytest.approx(simulate_treadmill(world, 3, seed=4).path[0])
    assert rates[2] > rates[0]  # it errs on what nobody collected
    noisy = simulate_catch_rates(World(0.1, 0.4, "random", 5000), 1, seed=4)
    assert noisy[0] == pytest.approx(0.1 * 0.6, abs=0.02)


def test_nine_of_ten_intervals_hold():
    rows = check_forecasts(worlds=250, seed=3)
    assert {row.learner for row in rows} == {"random", "stubborn"}
    coverage = sum(row.coverage for row in rows) / len(rows)
    assert abs(coverage - CONFIDENCE) <= 0.03
    # The worst case, of a stubborn learner whose rates turn.
    assert min(row.coverage for row in rows) >= 0.82


def test_the_command_prints_one_object(capsys):
    assert main(["--worlds", "3", "--seed", "2", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["worlds"] == 3
    assert len(body["by"]) == 10
    assert 0 <= body["coverage90"] <= 1
    assert main(["--worlds", "3"]) == 0
    assert "stubborn" in capsys.readouterr().out
    assert main(["--worlds", "0"]) == 2
