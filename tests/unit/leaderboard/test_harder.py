"""How much of a fall from one round to the next is harder examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.rounds.harder import MIN_MODELS, PlacedScore, split_fall

MODELS, ITEMS = 30, 200
SCORES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=MIN_MODELS, max_size=12)


def measure(*values):
    return [PlacedScore(value) for value in values]


def test_models_that_ran_both_rounds_lose_by_harder_examples_alone():
    split = split_fall(measure(0.8, 0.7, 0.6), measure(0.7, 0.6, 0.5), (0.01, 0.01))
    assert (split.fall, split.harder, split.others) == pytest.approx((0.1, 0.1, 0.0))
    assert split.both_count == 3
    assert split.high - split.low == pytest.approx(2 * 1.96 * 0.01 * 2**0.5)


def test_a_fall_by_weaker_models_is_no_fall_by_harder_examples():
    strong, weak = [PlacedScore(0.8)] * 3, [PlacedScore(0.6)] * 3
    expected = [PlacedScore(0.8, 0.05)] * 3, [PlacedScore(0.6, 0.05)] * 3
    split = split_fall(strong + expected[1], expected[0] + weak, (0.0, 0.0))
    assert (split.fall, split.harder, split.others) == pytest.approx((0.2, 0.0, 0.2))
    assert (split.both_count, split.high) == (0, pytest.approx(0.05))


def test_too_few_models_tell_nothing():
    both = measure(*[0.5] * (MIN_MODELS - 1))
    assert split_fall(both, both, (0.0, 0.0)) is None
    mixed = [*both, PlacedScore(0.5, 0.1)]
    assert split_fall(mixed, measure(*[0.5] * MIN_MODELS), (0.0, 0.0)) is None


@given(SCORES)
def test_both_parts_are_the_whole_fall_and_turning_time_turns_the_sign(pairs):
    earlier = measure(*(first for first, _last in pairs))
    later = measure(*(last for _first, last in pairs))
    split, turned = (
        split_fall(earlier, later, (0.02, 0.01)),
        split_fall(later, earlier, (0.01, 0.02)),
    )
    assert split.harder + split.others == pytest.approx(split.fall)
    assert split.low <= split.harder <= split.high
    assert (turned.harder, turned.low) == pytest.approx((-split.harder, -split.high))


def test_the_interval_holds_the_known_difference_in_95_of_100_worlds():
    """Items get harder by a known amount; the error of their choice is estimated from them."""
    random = np.random.default_rng(7)
    abilities = random.normal(0, 1, MODELS)
    # The chance of each model on an item of a round, over all items that could have been written.
    levels = random.normal(0, 1, 20_000)
    chances = [1 / (1 + np.exp(-(abilities[:, None] - levels - shift))) for shift in (0.0, 0.5)]
    truth = float(chances[0].mean() - chances[1].mean())
    held = 0
    for _world in range(400):
        sides, errors = [], []
        for chance in chances:
            drawn = chance[:, random.integers(0, len(levels), ITEMS)]
            is_right = random.random(drawn.shape) < drawn
            sides.append([PlacedScore(value) for value in is_right.mean(axis=1).tolist()])
            errors.append(float(is_right.mean(axis=0).std(ddof=1) / ITEMS**0.5))
        split = split_fall(*sides, tuple(errors))
        held += split.low <= truth <= split.high
    # Two and a half standard errors of a share of 0.95 of 400.
    assert abs(held / 400 - 0.95) < 0.028
