"""Leaks: the difference of two halves, its clustered error, what can be found and excluded."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evaluation.scoring.corrections import adjust_by_holm
from evaluation.scoring.leaks import (
    MIN_AUTHORS,
    LeakEstimate,
    TrialHalf,
    compute_smallest_leak,
    estimate_leak,
    plan_smallest_leak,
)


def half(random, authors=20, rows=5, chance=0.6, expected=None):
    n = authors * rows
    right = (random.random(n) < chance).astype(float)
    names = [author for author in range(authors) for _ in range(rows)]
    return TrialHalf(right, np.zeros(n) if expected is None else expected, names)


def test_equal_authors_give_the_t_test_of_their_means():
    """An oracle: with equally many rows of each author, Welch's t-test of the authors' means."""
    random = np.random.default_rng(1)
    released, held = half(random), half(random, authors=12, chance=0.5)
    found = estimate_leak(released, held)
    means = [side.is_right.reshape(-1, 5).mean(axis=1) for side in (released, held)]
    oracle = stats.ttest_ind(*means, equal_var=False, alternative="greater")
    assert found.difference == pytest.approx(means[0].mean() - means[1].mean())
    assert found.p_value == pytest.approx(oracle.pvalue)
    assert found.degrees_of_freedom == pytest.approx(oracle.df)
    assert found.interval == pytest.approx(
        stats.ttest_ind(*means, equal_var=False).confidence_interval(0.95)
    )
    assert found.largest_leak == pytest.approx(
        stats.ttest_ind(*means, equal_var=False).confidence_interval(0.9).high
    )


def test_earlier_models_make_the_error_smaller_and_move_no_mean():
    random = np.random.default_rng(2)
    sides = []
    for chance in (0.6, 0.6):
        hard = random.random(200) < chance
        sides.append((hard, TrialHalf(hard.astype(float), np.zeros(200), list(range(200)))))
    plain = estimate_leak(*[side for _, side in sides])
    helped = estimate_leak(
        *[TrialHalf(s.is_right, np.where(hard, 0.8, 0.2), s.authors) for hard, s in sides]
    )
    assert helped.error < 1e-6 < plain.error
    assert abs(helped.difference) < 1e-9


def test_one_large_author_makes_it_uncertain():
    random = np.random.default_rng(3)
    even = half(random, authors=20, rows=10)
    names = [0] * 150 + [1 + place % 19 for place in range(50)]
    uneven = TrialHalf(even.is_right, even.expected, names)
    assert (
        estimate_leak(uneven, even).degrees_of_freedom
        < estimate_leak(even, even).degrees_of_freedom
    )


@pytest.mark.parametrize(("authors", "rows"), [(MIN_AUTHORS - 1, 50), (MIN_AUTHORS, 5)])
def test_too_few_authors_or_rows_say_nothing(authors, rows):
    random = np.random.default_rng(4)
    assert estimate_leak(half(random), half(random, authors, rows)) is None
    assert estimate_leak(half(random, authors, rows), half(random)) is None


def test_a_model_that_is_always_right_has_no_error():
    sure = TrialHalf(np.ones(50), np.zeros(50), list(range(50)))
    found = estimate_leak(sure, sure)
    assert (found.error, found.p_value, found.largest_leak) == (0, 1, 0)
    better = estimate_leak(sure, TrialHalf(np.zeros(50), np.zeros(50), list(range(50))))
    assert better.p_value == 0


def test_the_smallest_leak_is_found_in_80_percent():
    """An oracle: the power of a one-sided test for a shift of this size, with many clusters."""
    leak = compute_smallest_leak(0.02, 1e6)
    assert stats.norm.sf(stats.norm.ppf(0.95) - leak / 0.02) == pytest.approx(0.8, abs=1e-4)
    assert LeakEstimate(0.0, 0.02, 1e6).smallest_leak == leak


def test_the_plan_without_clusters_is_the_textbook_formula():
    error = sqrt(0.21 * 2 / 1000)
    planned = plan_smallest_leak(1000, 1000, 1, explained=0)
    assert planned == pytest.approx(2.4865 * error, rel=1e-3)
    assert plan_smallest_leak(1000, 1000, 20) > plan_smallest_leak(1000, 1000, 5)
    assert plan_smallest_leak(500, 1000, 5) > plan_smallest_leak(1000, 1000, 5)


@given(st.floats(-1, 1), st.floats(0.0001, 0.5), st.integers(1, 60))
def test_rounding_hides_the_exact_numbers_and_claims_no_more(difference, error, steps):
    exact = LeakEstimate(difference, error, 30.0)
    shown = exact.round_to(steps)
    assert shown.error >= error
    assert shown.difference * steps == pytest.approx(round(difference * steps))
    assert (shown.error * 4 * steps) == pytest.approx(round(shown.error * 4 * steps))
    assert shown.smallest_leak >= exact.smallest_leak


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_makes_none_smaller(p_values):
    corrected = adjust_by_holm(p_values)
    assert all(1 >= new >= old for new, old in zip(corrected, p_values, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert sorted(corrected) == [corrected[place] for place in order]


def test_holm_on_a_worked_example():
    """By hand, after Holm (1979): four tests, of which two stay below 0.05."""
    assert adjust_by_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjust_by_holm([0.04]) == [0.04]
