"""Rankings of several answers as votes on pairs: what they say, and what they weigh."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from leaderboard.arena.battles.breaking import break_ranking
from leaderboard.arena.battles.pairing import compute_pair_chances
from leaderboard.arena.ranking import rank_models
from tests.support.arenas import ranked, simulated, votes_of

RANKINGS = st.lists(st.integers(1, 5), min_size=2, max_size=5).map(
    lambda places: dict(zip("abcde", places, strict=False))
)


def strengths(votes, count):
    return [one.value for one in rank_models(count, votes, draws=2).strengths]


@given(RANKINGS)
def test_each_pair_has_one_vote_for_the_better_place(ranking):
    votes = break_ranking(ranking)
    assert [(vote.first, vote.second) for vote in votes] == list(combinations(ranking, 2))
    for vote in votes:
        lead = ranking[vote.second] - ranking[vote.first]
        assert vote.winner == ("tie" if lead == 0 else "left" if lead > 0 else "right")


@given(RANKINGS)
def test_a_ranking_weighs_as_many_choices_as_it_has(ranking):
    assert sum(vote.weight for vote in break_ranking(ranking)) == pytest.approx(len(ranking) - 1)


@given(RANKINGS, st.integers(1, 3))
def test_only_the_order_of_the_places_counts(ranking, factor):
    spread = {side: factor * place + 1 for side, place in ranking.items()}
    assert break_ranking(spread) == break_ranking(ranking)


def test_a_ranking_of_two_is_the_vote_that_it_always_was():
    (vote,) = break_ranking({"left": 1, "right": 2})
    assert vote == ("left", "right", "left", 1.0)


@pytest.mark.parametrize("answers", [3, 4, 5])
def test_many_rankings_give_the_strengths_of_plackett_and_luce(answers):
    """As choix's maximum likelihood of the whole rankings, and as the simulated strengths."""
    choix = pytest.importorskip("choix")
    known = np.array([1.2, 0.5, 0.0, -0.6, -1.1])
    rankings, votes = ranked(7, known, voters=400, each=10, answers=answers)
    ours = np.array(strengths(votes, 5))
    theirs = choix.ilsr_rankings(5, rankings)
    assert ours == pytest.approx(theirs - theirs.mean(), abs=0.07)
    assert ours == pytest.approx(known - known.mean(), abs=0.1)


def test_weights_enter_the_likelihood():
    """Pairs and rankings together: the maximum of the weighted likelihood, found by scipy."""
    _, of_three = ranked(3, [0.9, 0.2, -0.3, -0.8], voters=20, each=4, answers=3)
    pairs = simulated(4, [0.9, 0.2, -0.3, -0.8], voters=20, each=4, tie=-1.0)
    both = [np.concatenate(columns) for columns in zip(of_three[:4], pairs[:4], strict=True)]
    weight = np.concatenate([of_three.weight, np.ones(len(pairs.left))])
    left, right, outcome, voter = both

    def lose(point):
        half = (point[left] - point[right]) / 2
        logs = np.column_stack([half, -half, np.full(len(half), point[4])])
        chances = logs - np.logaddexp.reduce(logs, axis=1)[:, None]
        return -(weight * chances[np.arange(len(half)), outcome]).sum() + point[:4].sum() ** 2

    best = minimize(lose, np.zeros(5), method="BFGS", options={"gtol": 1e-8}).x[:4]
    votes = of_three._replace(left=left, right=right, outcome=outcome, voter=voter, weight=weight)
    assert strengths(votes, 4) == pytest.approx((best - best.mean()).tolist(), abs=1e-4)
    assert strengths(votes._replace(weight=None), 4) != pytest.approx(best.tolist(), abs=1e-3)


def test_equal_weights_change_no_strength():
    votes = simulated(2, [0.5, 0.0, -0.5], voters=15, each=8)
    weighted = votes._replace(weight=np.full(len(votes.left), 0.5))
    assert strengths(weighted, 3) == pytest.approx(strengths(votes, 3), abs=1e-6)
    ones = rank_models(3, votes._replace(weight=np.ones(len(votes.left))))
    assert ones == rank_models(3, votes)


def test_light_votes_leave_more_to_learn_about_a_pair():
    votes = votes_of([(0, 1, "left", 1), (0, 1, "right", 2), (0, 2, "left", 1), (0, 2, "right", 2)])
    light = votes._replace(weight=np.array([1.0, 1.0, 0.1, 0.1]))
    pairs, chances = compute_pair_chances(3, light, np.arange(3))
    by_pair = {tuple(pair): chance for pair, chance in zip(pairs.tolist(), chances, strict=True)}
    assert by_pair[0, 2] > by_pair[0, 1]
