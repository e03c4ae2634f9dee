"""How hard and how ambiguous an item is for people: cases, and the shares of simulated votes."""

import numpy as np
import pytest

from evaluation.scoring.ruler.people import MIN_VOTES, estimate_ambiguity, estimate_error


def test_few_votes_state_nothing():
    assert estimate_error(0, MIN_VOTES - 1) is None
    assert estimate_ambiguity([MIN_VOTES - 1], 3) is None
    assert estimate_error(0, MIN_VOTES) is not None


def test_the_error_is_jeffreys_interval():
    # Brown, Cai and DasGupta 2001: quantiles of Beta(x + 1/2, n - x + 1/2).
    found = estimate_error(2, 10)
    assert found.value == pytest.approx(2.5 / 11)
    assert (found.low, found.high) == pytest.approx((0.0441, 0.5028), abs=5e-4)


def test_ambiguity_grows_with_disagreement_and_not_with_the_answers_name():
    agreed, split = estimate_ambiguity([10], 3), estimate_ambiguity([5, 5], 3)
    assert agreed.value < 0.2 < 0.4 < split.value
    assert estimate_ambiguity([2, 8], 3) == estimate_ambiguity([8, 2], 3)


@pytest.mark.parametrize("shares", [(0.9, 0.05, 0.05), (0.5, 0.4, 0.1)])
def test_intervals_of_ambiguity_hold(shares):
    chance = np.random.default_rng(1)
    truth = 1 - sum(share**2 for share in shares)
    votes = chance.multinomial(20, shares, 400)
    found = [estimate_ambiguity([int(n) for n in row if n], 3) for row in votes]
    assert np.mean([one.low <= truth <= one.high for one in found]) > 0.88
