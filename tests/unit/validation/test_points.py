"""Points: what an example and a judgement are worth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validation.rewards.points import day_total, example_points, novelty, scarcity, vote_points

share = st.floats(0, 1)


@pytest.mark.parametrize(
    ("similarity", "new"), [(0, 1), (0.2, 1), (0.5, 0.7), (0.9, 0.3), (0.91, 0), (1, 0)]
)
def test_novelty(similarity, new):
    assert novelty(similarity) == pytest.approx(new)


@pytest.mark.parametrize(
    ("have", "in_all", "labels", "bonus"),
    [(0, 0, 3, 0), (1, 1, 3, 0), (1, 6, 3, 0.5), (0, 6, 3, 1)],
)
def test_scarcity(have, in_all, labels, bonus):
    assert scarcity(have, in_all, labels) == pytest.approx(bonus)


@pytest.mark.parametrize(
    ("facts", "points"),
    [
        ((True, False, True, 1, 0), 4),  # verified, fooled, new
        ((True, False, True, 0, 0), 1),  # a copy of what fooled before
        ((True, False, False, 1, 0), 1),  # the model was right, and the example holds
        ((True, False, True, 0.5, 0.5), 3),
        ((False, True, True, 1, 1), -1),  # people agree on another label
        ((False, False, True, 1, 1), 0),  # no agreement, or nobody could tell
    ],
)
def test_an_example(facts, points):
    names = ("verified", "is_wrong", "fooled", "novelty", "scarcity")
    assert example_points(**dict(zip(names, facts, strict=True))) == pytest.approx(points)


@given(st.booleans(), share, share, share)
def test_what_holds_is_worth_more_than_what_does_not(fooled, similarity, rare, other):
    new = {"fooled": fooled, "novelty": novelty(similarity), "scarcity": rare}
    held = example_points(verified=True, is_wrong=False, **new)
    assert 1 <= held <= 5
    assert held > example_points(verified=False, is_wrong=False, **new) == 0
    assert example_points(verified=False, is_wrong=True, **new) == -1
    assert 0 <= scarcity(int(other * 9), 9, 3) <= 1


@given(share, share)
def test_a_newer_text_never_has_fewer_points(one, other):
    near, far = sorted([one, other])
    assert novelty(near) >= novelty(far)


def test_judgements_and_days():
    assert [vote_points(kappa) for kappa in (None, -0.5, 0.25, 1)] == [1, 1, 1.5, 3]
    assert day_total([4.0, -1.0]) == 3
    assert day_total([-1.0]) == 0


@given(st.none() | st.floats(-1, 1))
def test_a_judgement(kappa):
    assert 1 <= vote_points(kappa) <= 3
    assert vote_points(None) == vote_points(-0.5) == 1
    assert vote_points(1) == 3


@given(st.lists(st.floats(-1, 5)))
def test_a_day_never_costs_anything(points):
    assert day_total(points) >= 0
    assert day_total([4.0, -1.0]) == 3
