"""Draws of arms: balanced after each urn, with the probability that they had."""

from collections import Counter
from random import Random

import numpy as np

from annotation.rules.draws import draw_arm, fill_urn
from dynabench.studies.rules.simulation import draw_many_arms

RATIOS = {"control": 1, "helped": 2}


def draw_one_after_another(people, seed=0):
    random, arms, probabilities = Random(seed), [], []
    for _ in range(people):
        draw = draw_arm(RATIOS, arms, random)
        arms.append(draw.arm)
        probabilities.append(draw.probability)
    return arms, probabilities


def test_each_urn_holds_the_arms_by_their_ratio():
    arms, probabilities = draw_one_after_another(300)
    for first in range(0, 300, 3):
        assert sorted(arms[first : first + 3]) == ["control", "helped", "helped"]
    # The last draw of an urn is certain, the first is by the ratio.
    assert set(probabilities[2::3]) == {1.0}
    assert set(probabilities[::3]) == {1 / 3, 2 / 3}
    assert draw_one_after_another(300) == (arms, probabilities)


def test_the_probability_is_the_frequency():
    first_draws = Counter(draw_arm(RATIOS, ["helped"], Random(seed)) for seed in range(4000))
    assert len(first_draws) == 2
    for draw, count in first_draws.items():
        assert draw.probability == 0.5
        assert abs(count / 4000 - 0.5) < 0.04


def test_many_draws_are_distributed_like_single_ones():
    assert fill_urn([1, 2]) == [0, 1, 1]
    strata = np.array([0, 0, 0, 1, 1, 1, 1])
    arms = draw_many_arms([1, 2], strata, 3000, np.random.default_rng(1))
    assert (np.sort(arms[:, :3], axis=1) == [0, 1, 1]).all()
    single_draws = Counter(tuple(draw_one_after_another(3, seed)[0]) for seed in range(3000))
    many_draws = Counter(map(tuple, arms[:, :3].tolist()))
    for order, count in single_draws.items():
        codes = tuple(list(RATIOS).index(arm) for arm in order)
        assert abs(many_draws[codes] - count) < 150
