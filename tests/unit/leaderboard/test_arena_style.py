"""Strengths with the style of answers held constant: another program's values, odd designs."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leaderboard.arena.ranking import LEFT, Votes, rank_models
from tests.support.arenas import simulated, styled

STRENGTHS, EFFECTS = (1.0, 0.3, -0.2, -1.1), (0.6, -0.4, 0.0)


def values(ranking):
    strengths, effects = [one.value for one in ranking.strengths], [one[0] for one in ranking.style]
    return strengths, effects


@pytest.fixture(scope="module")
def decided():
    return styled(1, STRENGTHS, EFFECTS, voters=40, each=30, tie=None)


def test_without_ties_it_is_a_logistic_regression(decided):
    votes, style = decided
    design = np.zeros((len(style), 4))
    rows = np.arange(len(style))
    design[rows, votes.left] += 1
    design[rows, votes.right] -= 1
    columns = np.hstack([design[:, 1:], style])  # the first model is the reference
    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs = model.fit(columns, votes.outcome == LEFT).coef_[0]
    relative = np.append(0, theirs[:3])
    strengths, effects = values(rank_models(4, votes, style=style, draws=2))
    assert strengths == pytest.approx((relative - relative.mean()).tolist(), abs=1e-4)
    assert effects == pytest.approx(theirs[3:].tolist(), abs=1e-4)


def test_known_values_come_back_where_raw_strengths_mislead():
    """A long-winded model wins by length alone: held constant, both are equal."""
    votes, style = styled(2, (0, 0), (1.5,), voters=200, each=30, tie=-1.0)
    longer = style + np.where(votes.left == 0, 1.0, -1.0)[:, None]
    chance = np.random.default_rng(3).random(len(style)) < 1 / (1 + np.exp(-1.5 * longer[:, 0]))
    fooled = Votes(votes.left, votes.right, np.where(chance, 0, 1), votes.voter)
    raw = rank_models(2, fooled, draws=20).strengths[0]
    held = rank_models(2, fooled, style=longer, draws=20)
    assert raw.low > 0.3
    assert held.strengths[0].low < 0 < held.strengths[0].high
    assert held.style[0][0] == pytest.approx(1.5, abs=0.2)


def test_what_never_differs_changes_nothing():
    votes = simulated(4, [0.5, 0, -0.5], voters=20, each=20)
    plain = rank_models(3, votes, draws=20)
    style = np.zeros((len(votes.left), 2))
    found = rank_models(3, votes, style=style, draws=20)
    assert values(found)[0] == pytest.approx(values(plain)[0], abs=1e-6)
    assert found.style == ((None, None, None),) * 2
    assert [one.high for one in found.strengths] == pytest.approx(
        [one.high for one in plain.strengths], abs=1e-6
    )


def test_turned_sides_and_other_units_give_the_same(decided):
    votes, style = decided
    turned = Votes(votes.right, votes.left, 1 - votes.outcome, votes.voter)
    strengths, effects = values(rank_models(4, votes, style=style, draws=2))
    found, theirs = values(rank_models(4, turned, style=-style * 7, draws=2))
    assert found == pytest.approx(strengths, abs=1e-6)
    assert [7 * one for one in theirs] == pytest.approx(effects, abs=1e-6)


def test_a_style_that_decides_everything_stays_finite():
    """The longer answer always wins, and each model always has its own length."""
    draw = np.random.default_rng(5)
    left, right = draw.integers(3, size=(2, 200))
    right = np.where(left == right, (left + 1) % 3, right)
    style = (left - right)[:, None].astype(float)
    votes = Votes(left, right, np.where(style[:, 0] > 0, 0, 1), draw.integers(9, size=200))
    found = rank_models(3, votes, style=style, draws=20)
    assert found.is_bounded
    assert np.isfinite([*values(found)[0], *values(found)[1]]).all()


def test_of_unconnected_models_the_largest_group_is_ranked():
    left, right = np.array([0, 1, 3] * 20), np.array([1, 2, 4] * 20)
    draw = np.random.default_rng(6)
    votes = Votes(left, right, draw.integers(3, size=60), draw.integers(5, size=60))
    found = rank_models(5, votes, style=draw.normal(size=(60, 1)), draws=20)
    assert [one.value is None for one in found.strengths] == [False, False, False, True, True]
    assert found.style[0][1] is not None
