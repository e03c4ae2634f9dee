"""The day on which a round stopped telling models apart, on planted saturation."""

from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leaderboard.rounds.worn_rules import (
    MIN_EXAMPLES,
    MIN_MODELS,
    DatedScore,
    WornState,
    _compute_tail_statistics,
    find_worn_day,
)

START = date(2026, 1, 1)


def plant(random, rising=15, flat=15, step=0.03, n=800):
    """Models that come every ten days, rise by `step`, and then are all alike."""
    levels = [0.3 + step * place for place in range(rising)]
    levels += [0.3 + step * rising] * flat
    return [
        DatedScore(START + timedelta(days=10 * place), float(random.binomial(n, level)) / n, n)
        for place, level in enumerate(levels)
    ]


def test_planted_saturation_is_dated_right():
    """The planted day is in the interval nearly always, and missed by two models at most."""
    random = np.random.default_rng(5)
    true_day = START + timedelta(days=150)
    inside = near = 0
    for _ in range(200):
        found = find_worn_day(plant(random))
        assert found.state == WornState.WORN
        inside += found.low <= true_day <= found.high
        near += abs((found.day - true_day).days) <= 20
    assert inside >= 180
    assert near >= 180


def test_models_that_still_rise_are_told_apart():
    random = np.random.default_rng(6)
    found = [find_worn_day(plant(random, rising=20, flat=0)).state for _ in range(100)]
    assert found.count(WornState.NOT_YET) >= 95


def test_models_that_never_differed_are_alike_from_the_first_day():
    random = np.random.default_rng(7)
    found = [find_worn_day(plant(random, rising=0, flat=20)) for _ in range(100)]
    assert sum(one.low == START for one in found) >= 90


def test_models_of_one_day_have_no_order():
    random = np.random.default_rng(8)
    scores = plant(random, rising=10, flat=0)
    one_day = [DatedScore(START, score.value, score.n) for score in scores]
    later = [DatedScore(START + timedelta(days=9), 0.9, 800)] * 6
    found = find_worn_day([*one_day, *later])
    assert (found.day, found.models) == (later[0].day, 6)


@pytest.mark.parametrize(("models", "n"), [(MIN_MODELS - 1, 800), (20, MIN_EXAMPLES - 1), (0, 0)])
def test_too_few_models_or_examples_say_nothing(models, n):
    random = np.random.default_rng(9)
    scores = plant(random, rising=0, flat=models, n=n or 1)
    assert find_worn_day(scores).state == WornState.TOO_FEW


def test_rounded_scores_seem_to_differ_less():
    values = [0.5, 0.55] * 6
    scores = [DatedScore(START + timedelta(days=at), v, 900) for at, v in enumerate(values)]
    assert find_worn_day(scores).state == WornState.NOT_YET
    assert find_worn_day(scores, rounding_step=0.1).state == WornState.WORN


def test_the_statistic_is_cochrans():
    """An oracle: the χ² test of equal shares, which pools the variance instead."""
    random = np.random.default_rng(10)
    scores = plant(random, rising=0, flat=10, n=5000)
    right = np.array([round(score.value * score.n) for score in scores])
    oracle = stats.chi2_contingency([right, 5000 - right], correction=False).statistic
    assert _compute_tail_statistics(scores, 0.0)[0] == pytest.approx(oracle, rel=0.02)


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1), st.integers(1, 3000)), max_size=30))
def test_the_interval_holds_the_day(rows):
    scores = [DatedScore(START + timedelta(days=day), value, n) for day, value, n in rows]
    found = find_worn_day(scores)
    if found.state == WornState.WORN:
        assert found.low <= found.day <= found.high
        assert found.models == sum(score.day >= found.day for score in scores)
    else:
        assert (found.day, found.low, found.high, found.models) == (None, None, None, 0)
    assert find_worn_day(scores[::-1]) == found


def test_models_of_the_last_day_may_differ():
    scores = [DatedScore(START, 0.1 * place, 900) for place in range(1, 10)]
    assert find_worn_day(scores).state == WornState.NOT_YET
