"""A model's score on a whole round, from the examples that people confirmed in a random sample."""

from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.scoring.whole_rounds import RoundTry, estimate_whole_round
from validation.consensus.vote_draws import compute_draw_chance

SIZE, AUTHORS, DRAWS = 240, 24, 150


def make_round(seed, judge_quality):
    """Whether people confirm, whether the model is right, and what a judge says of each example.

    judge_quality: from −1 (a judge who is always wrong) over 0 (who guesses) to 1 (who knows all).
    The model is better at what people confirm without doubt, so an unweighted score is wrong.
    """
    random = np.random.default_rng(seed)
    is_confirmed = random.random(SIZE) < 0.7
    is_easy = random.random(SIZE) < 0.6
    is_right = random.random(SIZE) < np.where(is_easy, 0.9, 0.3)
    signal = np.where(is_confirmed, 1.0, -1.0) * judge_quality * np.where(is_easy, 1.0, 0.2)
    judge = np.clip(0.5 + 0.5 * signal + 0.1 * random.standard_normal(SIZE), 0, 1)
    chances = [compute_draw_chance(float(score), 0.3) for score in judge]
    return is_confirmed, is_right, judge, np.array(chances)


def draw_estimate(world, random):
    is_confirmed, is_right, judge, chances = world
    is_drawn = random.random(SIZE) < chances
    tries = []
    for place in range(SIZE):
        right = bool(is_right[place]) if is_drawn[place] and is_confirmed[place] else None
        tries.append(
            RoundTry(
                place % AUTHORS,
                float(judge[place]),
                float(chances[place]),
                bool(is_drawn[place]),
                True,
                right,
            )
        )
    return estimate_whole_round(tries)


@settings(max_examples=6, derandomize=True, deadline=None)
@given(st.integers(0, 1000), st.floats(-1, 1))
def test_the_mean_over_draws_is_the_score_of_the_fully_judged_round(seed, judge_quality):
    world = make_round(seed, judge_quality)
    is_confirmed, is_right = world[:2]
    truth = is_right[is_confirmed].mean()
    random = np.random.default_rng(seed + 1)
    estimates = [draw_estimate(world, random) for _ in range(DRAWS)]
    values = [estimate.value for estimate in estimates]
    error = stdev(values) / DRAWS**0.5
    # A ratio's bias is of the order of one over the judged examples.
    assert fmean(values) == pytest.approx(truth, abs=4 * error + 1 / SIZE)
    held = fmean(estimate.low <= truth <= estimate.high for estimate in estimates)
    assert held >= 0.88


def test_the_unweighted_score_would_be_wrong():
    world = make_round(1, 0.9)
    is_confirmed, is_right, _, chances = world
    truth = is_right[is_confirmed].mean()
    weights = chances[is_confirmed]
    unweighted = np.average(is_right[is_confirmed], weights=weights)
    assert abs(unweighted - truth) > 0.04


def test_if_all_were_drawn_it_is_the_score_itself():
    is_confirmed, is_right, judge, _ = make_round(2, 0.5)
    tries = [
        RoundTry(n % AUTHORS, float(judge[n]), 1.0, True, True, bool(right) if shown else None)
        for n, (right, shown) in enumerate(zip(is_right, is_confirmed, strict=True))
    ]
    assert estimate_whole_round(tries).value == pytest.approx(is_right[is_confirmed].mean())


def test_what_nobody_is_asked_about_changes_nothing():
    tries = [RoundTry(n % 5, 0.9, 0.5, n % 2 == 0, True, n % 4 == 0 or None) for n in range(80)]
    known = [RoundTry(n % 5, None, 1.0, False, False, None) for n in range(40)]
    assert estimate_whole_round(tries + known).value == pytest.approx(
        estimate_whole_round(tries).value
    )


def test_an_owners_choice_is_no_part_of_the_sample():
    tries = [RoundTry(n % 5, 0.9, 0.5, n % 2 == 0, True, n % 4 == 0) for n in range(80)]
    # Of those that weren't drawn the set has none, or those that the owner confirmed.
    without = [one if one.is_asked else one._replace(is_right=None) for one in tries]
    assert estimate_whole_round(tries) == estimate_whole_round(without)


def test_too_few_say_nothing():
    few = [RoundTry(n % 5, 0.9, 0.5, n < 9, True, True if n < 9 else None) for n in range(80)]
    assert estimate_whole_round(few) is None
    two_authors = [RoundTry(n % 2, 0.9, 0.5, n < 40, True, True) for n in range(80)]
    assert estimate_whole_round(two_authors) is None
