"""Battles drawn by information, weighted back: the strengths are those of equal chances."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.arena.battles.pairing import compute_pair_chances
from leaderboard.arena.battles.weights import (
    UNIFORM_SHARE,
    compute_draw_weight,
    compute_shown_chance,
)
from leaderboard.arena.ranking import LEFT, RIGHT, TIE, Votes, rank_models
from tests.support.arenas import simulated

chance_lists = st.lists(st.floats(0.01, 1), min_size=10, max_size=10)
PAIRS = list(combinations(range(5), 2))


@given(chance_lists, st.integers(2, 5))
def test_the_weight_of_each_set_of_models_makes_up_for_its_chance(sizes, answers):
    """A pair, then others with equal chances: chance × weight is the same for all sets."""
    total = sum(sizes)
    chances = {frozenset(pair): size / total for pair, size in zip(PAIRS, sizes, strict=True)}
    products = []
    for shown in combinations(range(5), answers):
        # The set comes up from each of its pairs, and then by the draw of the others.
        others = len(list(combinations(range(3), answers - 2)))
        drawn = sum(chances[frozenset(pair)] for pair in combinations(shown, 2)) / others
        mean_chance = compute_shown_chance(chances, shown)
        products.append(drawn * compute_draw_weight(mean_chance, len(PAIRS)))
    assert products == pytest.approx([1 / len(products)] * len(products))


def test_an_unknown_chance_weighs_one():
    assert compute_draw_weight(None, 3) == compute_draw_weight(0.2, None) == 1


@given(st.integers(0, 500), st.integers(2, 7), st.integers(0, 80))
def test_no_weight_is_above_its_bound_and_their_mean_is_one(seed, count, size):
    votes = simulated(seed, np.linspace(-3, 3, count), voters=4, each=size) if size else no_votes()
    _, chances = compute_pair_chances(count, votes, np.arange(count))
    weights = np.array([compute_draw_weight(chance, len(chances)) for chance in chances])
    assert weights.max() <= 1 / UNIFORM_SHARE + 1e-9
    assert chances @ weights == pytest.approx(1)


def no_votes():
    return Votes(*(np.empty(0, dtype=np.intp) for _ in range(4)))


def test_no_other_rule_adds_less_to_the_variance():
    """Neyman's allocation, by trying: chances moved between pairs raise the summed variance."""
    votes = simulated(4, [2.0, 0.5, 0.0, -2.5], voters=40, each=50, alike=0)
    pairs, chances = compute_pair_chances(4, votes, np.arange(4))
    fit = np.array([one.value for one in rank_models(4, votes, draws=2).strengths])
    # The same quantities, computed another way: with the true weight of a tie, and no prior.
    information = np.array([_measure_variance(fit[a] - fit[b]) for a, b in pairs])
    design = np.zeros((len(pairs), 4))
    design[np.arange(len(pairs)), pairs[:, 0]] = 1
    design[np.arange(len(pairs)), pairs[:, 1]] = -1
    hessian = design.T @ (information[:, None] * design)
    reach = np.linalg.norm(design @ np.linalg.pinv(hessian), axis=1)

    def add_variance(rule):
        return (information * reach**2 / rule).sum()

    pure = chances - UNIFORM_SHARE / len(pairs)
    pure /= pure.sum()
    best = add_variance(pure)
    assert best <= add_variance(np.full(len(pairs), 1 / len(pairs)))
    draw = np.random.default_rng(1)
    for _ in range(200):
        other = pure * np.exp(draw.normal(0, 0.3, len(pairs)))
        assert best <= add_variance(other / other.sum()) * 1.002


def _measure_variance(lead, tie=-1.0):
    wins = np.array([np.exp(lead / 2), np.exp(-lead / 2), np.exp(tie)])
    wins /= wins.sum()
    return (wins[0] + wins[1]) / 4 - ((wins[0] - wins[1]) / 2) ** 2


def test_what_a_new_model_has_less_of_is_drawn_more():
    votes = simulated(2, [0.0] * 5, voters=50, each=40)
    pairs, chances = compute_pair_chances(6, votes, np.arange(6))
    assert chances[(pairs == 5).any(axis=1)].sum() > 0.8


# Six models whose votes follow no strengths: the last two beat those that beat the others.
COUNT = 6
FIRST, SECOND = np.triu_indices(COUNT, 1)
SHARES = 1 / (1 + np.exp(-0.9 * (SECOND - FIRST)))
SHARES[(FIRST < 2) & (SECOND > 3)] = 0.1
TIES = 0.15


def play(draw, *, batches, size, is_uniform=False):
    """Votes of pairs drawn by the rule that follows from the votes before; two models join late."""
    columns = [np.empty(0, dtype=np.intp) for _ in range(3)]
    weights = np.empty(0)
    for batch in range(batches):
        live = np.arange(4 if batch < batches // 2 else COUNT)
        votes = Votes(*columns, columns[0], draw_weight=weights)
        pairs, chances = compute_pair_chances(COUNT, votes, live)
        if is_uniform:
            chances = np.full(len(pairs), 1 / len(pairs))
        drawn = draw.choice(len(pairs), size, p=chances)
        left, right = pairs[drawn].T
        place = {(a, b): n for n, (a, b) in enumerate(zip(FIRST, SECOND, strict=True))}
        share = SHARES[[place[pair] for pair in zip(left, right, strict=True)]]
        outcome = np.where(draw.random(size) < share, LEFT, RIGHT)
        outcome = np.where(draw.random(size) < TIES, TIE, outcome)
        columns = [
            np.append(old, new) for old, new in zip(columns, (left, right, outcome), strict=True)
        ]
        weights = np.append(weights, 1 / (len(pairs) * chances[drawn]))
    return Votes(*columns, np.arange(len(weights)), draw_weight=weights)


def fit_votes(votes):
    return np.array([one.value for one in rank_models(COUNT, votes, draws=2).strengths])


def test_the_mean_of_the_weighted_strengths_is_that_of_equal_chances():
    draw = np.random.default_rng(5)
    equal, weighted, plain = [], [], []
    for _ in range(60):
        votes = play(draw, batches=6, size=250)
        weighted.append(fit_votes(votes))
        plain.append(fit_votes(votes._replace(draw_weight=None)))
        equal.append(fit_votes(play(draw, batches=6, size=250, is_uniform=True)))
    error = np.sqrt((np.var(weighted, axis=0) + np.var(equal, axis=0)) / 60)
    distance = np.abs(np.mean(weighted, axis=0) - np.mean(equal, axis=0))
    biased = np.abs(np.mean(plain, axis=0) - np.mean(equal, axis=0))
    assert (distance < 4 * error).all()
    assert (biased > 8 * error).any()
