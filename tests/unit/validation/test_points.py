"""Points: what an example and a judgement are worth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validation.rewards.points import (
    compute_day_total,
    compute_example_points,
    compute_novelty,
    compute_scarcity,
    compute_vote_points,
)

share = st.floats(0, 1)


@pytest.mark.parametrize(
    ("similarity", "new"), [(0, 1), (0.2, 1), (0.5, 0.7), (0.9, 0.3), (0.91, 0), (1, 0)]
)
def test_novelty(similarity, new):
    assert compute_novelty(similarity) == pytest.approx(new)


@pytest.mark.parametrize(
    ("have", "in_all", "labels", "bonus"),
    [(0, 0, 3, 0), (1, 1, 3, 0), (1, 6, 3, 0.5), (0, 6, 3, 1)],
)
def test_scarcity(have, in_all, labels, bonus):
    assert compute_scarcity(have, in_all, labels) == pytest.approx(bonus)


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
    names = ("is_verified", "is_wrong", "is_fooled", "novelty", "scarcity")
    assert compute_example_points(**dict(zip(names, facts, strict=True))) == pytest.approx(points)


@given(st.booleans(), share, share, share)
def test_what_holds_is_worth_more_than_what_does_not(fooled, similarity, rare, other):
    new = {"is_fooled": fooled, "novelty": compute_novelty(similarity), "scarcity": rare}
    held = compute_example_points(is_verified=True, is_wrong=False, **new)
    assert 1 <= held <= 5
    assert held > compute_example_points(is_verified=False, is_wrong=False, **new) == 0
    assert compute_example_points(is_verified=False, is_wrong=True, **new) == -1
    assert 0 <= compute_scarcity(int(other * 9), 9, 3) <= 1


@given(share, share)
def test_a_newer_text_never_has_fewer_points(one, other):
    near, far = sorted([one, other])
    assert compute_novelty(near) >= compute_novelty(far)


def test_judgements_and_days():
    assert [compute_vote_points(kappa) for kappa in (None, -0.5, 0.25, 1)] == [1, 1, 1.5, 3]
    assert compute_day_total([4.0, -1.0]) == 3
    assert compute_day_total([-1.0]) == 0


@given(st.none() | st.floats(-1, 1))
def test_a_judgement(kappa):
    assert 1 <= compute_vote_points(kappa) <= 3
    assert compute_vote_points(None) == compute_vote_points(-0.5) == 1
    assert compute_vote_points(1) == 3


@given(st.lists(st.floats(-1, 5)))
def test_a_day_never_costs_anything(points):
    assert compute_day_total(points) >= 0
    assert compute_day_total([4.0, -1.0]) == 3
