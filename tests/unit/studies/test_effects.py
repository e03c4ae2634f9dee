"""Effects with clustered intervals, compared with a slow computation from the definition."""

import numpy as np
import pytest
from scipy import stats

from dynabench.studies.rules.effects import Layout, correct_for_several, estimate_effects


def draw_data(seed, people=12, each=5, contexts=7):
    rng = np.random.default_rng(seed)
    person_codes = np.repeat(np.arange(people), each)
    context_codes = rng.permutation(np.arange(people * each) % contexts)
    is_treated = rng.random(people * each) < 0.5
    values = rng.normal(size=people * each) + rng.normal(size=people)[person_codes] + is_treated
    return person_codes, context_codes, is_treated, values


def estimate(values, is_treated, layout, is_included=None):
    """The effects of one study."""
    if is_included is None:
        is_included = np.ones(len(values), bool)
    return estimate_effects(values[None], is_treated[None], is_included[None], layout)


def compute_cluster_variance(influence, is_treated, codes):
    """The variance of a sum by one kind of cluster, with each arm's small-sample factor."""
    factors = {}
    for arm in (True, False):
        clusters = len(set(codes[is_treated == arm]))
        factors[arm] = (clusters / (clusters - 1)) ** 0.5
    corrected = influence * np.array([factors[arm] for arm in is_treated.tolist()])
    return sum(corrected[codes == code].sum() ** 2 for code in set(codes))


def compute_by_definition(values, is_treated, person_codes, context_codes):
    """The difference of means, its two-way clustered variance, and the variance's parts."""
    means = np.where(is_treated, values[is_treated].mean(), values[~is_treated].mean())
    difference = values[is_treated].mean() - values[~is_treated].mean()
    weights = np.where(is_treated, 1 / is_treated.sum(), -1 / (~is_treated).sum())
    influence = weights * (values - means)
    parts = [
        compute_cluster_variance(influence, is_treated, codes)
        for codes in (person_codes, context_codes, person_codes * 1000 + context_codes)
    ]
    return difference, parts[0] + parts[1] - parts[2], parts


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_difference_and_its_error_are_those_of_the_definition(seed):
    person_codes, context_codes, is_treated, values = draw_data(seed)
    effects = estimate(
        values, is_treated, Layout(person_codes, context_codes, np.zeros_like(person_codes))
    )
    difference, variance, parts = compute_by_definition(
        values, is_treated, person_codes, context_codes
    )
    degrees = variance**2 / (parts[0] ** 2 / 11 + parts[1] ** 2 / 6)
    assert effects.difference[0] == pytest.approx(difference)
    if variance > 0.8 * parts[0]:
        assert effects.standard_error[0] ** 2 == pytest.approx(variance)
        assert effects.degrees_of_freedom[0] == pytest.approx(max(1, degrees))
    else:
        assert effects.standard_error[0] ** 2 == pytest.approx(parts[0])
        assert effects.degrees_of_freedom[0] == 11


def test_one_value_per_person_is_students_test():
    rng = np.random.default_rng(3)
    is_treated = np.arange(40) % 2 == 0
    values = rng.normal(size=40) + is_treated
    layout = Layout(np.arange(40), None, np.zeros(40, int))
    effects = estimate(values, is_treated, layout)
    t_test = stats.ttest_ind(values[is_treated], values[~is_treated])
    assert effects.difference[0] / effects.standard_error[0] == pytest.approx(t_test.statistic)
    assert effects.p[0] == pytest.approx(t_test.pvalue)
    assert effects.degrees_of_freedom[0] == 38
    interval = t_test.confidence_interval()
    assert 2 * effects.half_width[0] == pytest.approx(interval.high - interval.low)


def test_what_is_not_included_does_not_count():
    person_codes, context_codes, is_treated, values = draw_data(4)
    is_included = person_codes < 8
    layout = Layout(person_codes, context_codes, person_codes % 2)
    some = estimate(np.where(is_included, values, np.nan), is_treated, layout, is_included)
    rows = np.flatnonzero(is_included)
    part_layout = Layout(*(codes[rows] for codes in layout))
    alone = estimate(values[rows], is_treated[rows], part_layout)
    np.testing.assert_allclose(np.array(some), np.array(alone))


def test_within_people_what_a_person_has_in_common_does_not_count():
    person_codes, context_codes, _, values = draw_data(5, each=6)
    is_treated = np.arange(len(values)) % 2 == 0
    layout = Layout(person_codes, context_codes, person_codes)
    plain = estimate(values, is_treated, layout)
    shifted = estimate(values + 100.0 * person_codes, is_treated, layout)
    np.testing.assert_allclose(np.array(shifted), np.array(plain))


def test_without_a_second_person_or_arm_nothing_is_known():
    zeros, values = np.zeros(6, int), np.arange(6.0)
    one_person = estimate(values, values > 2, Layout(zeros, np.arange(6), zeros))
    assert np.isnan(one_person.standard_error[0])
    one_arm = estimate(values, values < 9, Layout(np.arange(6), None, zeros))
    assert np.isnan(one_arm.difference[0])
    assert np.isnan(one_arm.p[0])


def test_holm():
    p_values = np.array([[0.04, 0.01, 0.03], [0.5, np.nan, 0.02]])
    corrected = correct_for_several(p_values)
    np.testing.assert_allclose(corrected, [[0.06, 0.03, 0.06], [1.0, 1.0, 0.06]])
