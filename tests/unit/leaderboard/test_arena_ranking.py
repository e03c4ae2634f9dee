"""Strengths from comparisons: other programs' values, what must not change them, odd graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.arena.ranking import LEFT, RIGHT, TIE, Votes, rank_models
from tests.support.arenas import simulated, votes_of


def strengths(ranking):
    return [one.value for one in ranking.strengths]


@pytest.fixture(scope="module")
def decided():
    return simulated(3, np.linspace(-1.5, 1.5, 8), voters=40, each=30, tie=None)


def test_the_strengths_are_those_of_choix_and_evalica(decided):
    choix, evalica = pytest.importorskip("choix"), pytest.importorskip("evalica")
    ours = strengths(rank_models(8, decided, draws=2))
    won = decided.outcome == LEFT
    winners, losers = (
        np.where(won, decided.left, decided.right),
        np.where(won, decided.right, decided.left),
    )
    theirs = choix.opt_pairwise(8, list(zip(winners.tolist(), losers.tolist(), strict=True)))
    assert ours == pytest.approx(list(theirs - theirs.mean()), abs=5e-4)
    names = [f"m{n}" for n in range(8)]
    result = evalica.bradley_terry(
        [names[n] for n in winners],
        [names[n] for n in losers],
        [evalica.Winner.X] * len(winners),
        tolerance=1e-12,
        limit=10_000,
    )
    logs = np.log([result.scores[name] for name in names])
    assert ours == pytest.approx((logs - logs.mean()).tolist(), abs=5e-4)


def test_the_strengths_are_those_of_arena_rank(decided):
    """As its release 0.1.1 fits the same votes. It pins another numpy, so it is not asked here."""
    theirs = (-1.38693, -0.85205, -0.70694, -0.20738, 0.14766, 0.59388, 1.04415, 1.36762)
    assert strengths(rank_models(8, decided, draws=2)) == pytest.approx(theirs, abs=5e-5)


def test_ties_enter_by_davidsons_model():
    """Two models: the ratio of strengths is that of the wins, whatever the number of ties."""
    rows = [(0, 1, "left", 1)] * 30 + [(0, 1, "right", 2)] * 10
    for ties in (0, 1, 50):
        found = rank_models(2, votes_of(rows + [(1, 0, "tie", 3)] * ties), draws=2)
        assert strengths(found) == pytest.approx([np.log(3) / 2, -np.log(3) / 2], abs=1e-6)


def test_the_expected_scores_are_the_observed_ones():
    """What maximum likelihood says of Davidson's model: a tie is half a win on both sides."""
    votes = simulated(5, [0, 0.4, 1.1, -0.7], voters=30, each=20, tie=-0.5)
    found = np.array(strengths(rank_models(4, votes, draws=2)))
    half = (found[votes.left] - found[votes.right]) / 2
    ties = (votes.outcome == TIE).mean()
    tie = next(  # of the weights of a tie, the one with as many ties
        t
        for t in np.linspace(-2, 1, 3001)
        if (np.exp(t) / (np.exp(half) + np.exp(-half) + np.exp(t))).mean() >= ties
    )
    total = np.exp(half) + np.exp(-half) + np.exp(tie)
    expected = (np.exp(half) + np.exp(tie) / 2) / total
    observed = np.where(votes.outcome == TIE, 0.5, votes.outcome == LEFT)
    for model in range(4):
        gain = (observed - expected) * (votes.left == model)
        gain -= (observed - expected) * (votes.right == model)
        assert abs(gain.sum()) < 0.1


comparison = st.tuples(
    st.integers(0, 3),
    st.integers(1, 3),
    st.sampled_from(["left", "right", "tie"]),
    st.integers(0, 4),
).map(lambda row: (row[0], (row[0] + row[1]) % 4, *row[2:]))
some = st.lists(comparison, min_size=1, max_size=40).map(votes_of)


@settings(max_examples=30, deadline=None)
@given(some, st.permutations(range(4)))
def test_names_and_sides_do_not_matter(votes, names):
    found = rank_models(4, votes, draws=2)
    to = np.array(names)
    turned = np.where(votes.outcome == TIE, TIE, LEFT + RIGHT - votes.outcome)
    swapped = rank_models(4, Votes(votes.right, votes.left, turned, votes.voter), draws=2)
    assert swapped == found
    renamed = rank_models(4, votes._replace(left=to[votes.left], right=to[votes.right]), draws=2)
    if None in strengths(found):  # of equally large groups the first one counts
        assert None in strengths(renamed)
        return
    again = [strengths(renamed)[to[n]] for n in range(4)]
    assert again == pytest.approx(strengths(found), abs=1e-4)
    assert np.mean(again) == pytest.approx(0, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(some)
def test_twice_the_votes_change_no_strength(votes):
    found = rank_models(4, votes, draws=2)
    twice = rank_models(4, Votes(*(np.concatenate([part, part]) for part in votes[:4])), draws=2)
    assert twice.is_bounded == found.is_bounded
    if not found.is_bounded:
        assert strengths(twice) == pytest.approx(strengths(found), abs=1e-3)


def test_the_same_seed_gives_the_same_intervals(decided):
    first, again, other = (rank_models(8, decided, seed=seed, draws=20) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert strengths(first) == strengths(other)


def test_an_undefeated_model_is_first_and_finite():
    rows = [(0, 1, "left", n) for n in range(20)] + [(1, 2, "left", 1), (2, 1, "left", 2)]
    found = rank_models(3, votes_of(rows))
    assert found.is_bounded
    assert 2 < strengths(found)[0] < 10
    assert found.strengths[0].rank == 1


def test_a_tie_may_be_all_that_keeps_the_likelihood_from_a_maximum():
    rows = [(0, 1, "tie", 1), (1, 2, "tie", 2), (0, 2, "left", 3)]
    found = rank_models(3, votes_of(rows))
    assert found.is_bounded
    assert strengths(found) == sorted(strengths(found), reverse=True)


def test_only_ties_are_no_difference():
    found = rank_models(2, votes_of([(0, 1, "tie", n) for n in range(9)]))
    assert strengths(found) == pytest.approx([0, 0])
    assert [one.rank for one in found.strengths] == [1, 1]


def test_models_outside_the_largest_group_have_no_strength():
    rows = [(0, 1, "left", 1), (1, 0, "left", 2), (1, 2, "tie", 3), (3, 4, "left", 1)]
    found = rank_models(6, votes_of(rows))
    assert [one.value is None for one in found.strengths] == [False] * 3 + [True] * 3
    assert [one.rank for one in found.strengths[3:]] == [None] * 3


def test_one_voter_gives_no_interval():
    rows = [(0, 1, "left", 1), (1, 0, "left", 1), (0, 1, "left", 1)]
    found = rank_models(2, votes_of(rows)).strengths
    assert [(one.low, one.high, one.rank) for one in found] == [(None, None, 1)] * 2


def test_ranks_are_1_1_3():
    votes = simulated(1, [1, 1, -2], voters=60, each=20)
    assert [one.rank for one in rank_models(3, votes).strengths] == [1, 1, 3]


def test_a_voter_counts_as_one_opinion():
    """Votes of people who repeat themselves say less than as many people's."""
    votes = simulated(2, [0.5, 0, -0.5], voters=30, each=40, alike=1)
    apart = votes._replace(voter=np.arange(len(votes.voter)))
    unsure, sure = (rank_models(3, one, draws=200).strengths[0] for one in (votes, apart))
    assert unsure.value == sure.value
    assert unsure.high - unsure.low > 1.5 * (sure.high - sure.low)


def test_a_lead_that_only_ties_oppose_stays_finite():
    """The weight of a tie could grow with the lead for ever, so the imaginary model bounds it."""
    rows = [(0, 1, "left", 1)] * 49 + [(0, 1, "tie", 2)] * 11
    found = rank_models(2, votes_of(rows), draws=2)
    assert found.is_bounded
    assert 0 < found.strengths[0].value < 5


@pytest.mark.parametrize("times", [1, 84, 10_000])
def test_a_chain_of_victories_with_ties_at_its_end_is_ranked(times):
    """The bounded strengths may lie far apart: ties weigh the more, the fewer other pairs have."""
    rows = [(0, 1, "left", 1), (1, 2, "left", 2), (0, 2, "left", 3), (3, 2, "tie", 4)] * times
    found = rank_models(4, votes_of(rows), draws=2)
    assert found.is_bounded
    first, second, third, fourth = strengths(found)
    assert first > second > fourth > third
