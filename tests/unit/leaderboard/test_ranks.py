"""Models compared on the same examples: tests, corrections, ranks."""

from itertools import product
from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, false_discovery_control, t

from evaluation.scoring.corrections import adjust_by_benjamini_hochberg, adjust_by_holm
from leaderboard.ranking.ranks import (
    compare_scores,
    compute_min_detectable,
    compute_min_examples,
    label_ranks,
)

# Adjusted by statsmodels 0.15.0 (multipletests: holm, fdr_bh).
PS = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216]
PS += [0.222, 0.251, 0.269, 0.275, 0.34]
HOLM = [0.015, 0.112, 0.507, 0.507, 0.507, 0.6, 0.666, *[1] * 8]
BH = [0.015, 0.06, 0.126, 0.126, 0.126, 0.15, 0.1585714286, *[0.2946428571] * 7, 0.34]


def discordant(wins: int, losses: int, same: int) -> tuple[list[int], list[int]]:
    return [1] * wins + [0] * losses + [1] * same, [0] * wins + [1] * losses + [1] * same


def test_right_and_wrong_are_compared_exactly():
    found = compare_scores(*discordant(31, 54, 115))
    assert found.p == pytest.approx(0.016509, abs=5e-7)
    assert found.value == pytest.approx(-23 / 200)
    assert (found.n, found.clusters, found.method) == (200, 200, "mcnemar")
    # Bonett and Price 2012: (32 − 55)/202 ± 1.96 √((32/202 + 55/202 − (23/202)²)/202)
    half = 1.959964 * sqrt((87 / 202 - (23 / 202) ** 2) / 202)
    assert (found.low, found.high) == pytest.approx((-23 / 202 - half, -23 / 202 + half))


@pytest.mark.parametrize(("half", "n"), [(0.05, 385), (0.1, 97), (0.02, 2401), (0.01, 9604)])
def test_the_smallest_set_that_ranks_is_the_first_whose_interval_is_narrow_enough(half, n):
    widths = [NormalDist().inv_cdf(0.975) * sqrt(0.25 / size) for size in (n - 1, n)]
    assert compute_min_examples(half) == n
    assert widths[1] <= half < widths[0]


@given(st.integers(0, 80), st.integers(0, 80), st.integers(0, 20))
def test_p_is_the_binomial_tests(wins, losses, same):
    first, second = discordant(wins, losses, same + 1)
    found = compare_scores(first, second)
    if wins + losses:
        assert found.p == pytest.approx(binomtest(wins, wins + losses).pvalue)
    back = compare_scores(second, first)
    assert (back.p, back.value) == (found.p, -found.value)
    assert -1 <= found.low <= found.value <= found.high <= 1


def graded(seed: int, n: int, gain: float) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    second = chance.uniform(0, 0.8, n)
    return np.clip(second + chance.normal(gain, 0.2, n), 0, 1), second


def test_graded_answers_are_compared_by_pairs():
    first, second = graded(1, 400, 0.05)
    found = compare_scores(first, second)
    gains = first - second
    error = gains.std(ddof=1) / sqrt(400)
    assert found.value == pytest.approx(gains.mean())
    assert (found.low, found.high) == pytest.approx(t.interval(0.95, 399, found.value, error))
    assert found.p == pytest.approx(2 * t.sf(abs(found.value) / error, 399))
    assert (found.method, found.clusters) == ("student", 400)


def test_examples_of_one_author_count_as_one():
    """Twenty authors, each of whom wrote the same example twenty times."""
    first, second = graded(2, 20, 0.06)
    alone = compare_scores(first, second)
    authors = [f"w-{n}" for n in range(20) for _ in range(20)]
    repeated = compare_scores(np.repeat(first, 20), np.repeat(second, 20), authors)
    assert repeated.p == pytest.approx(alone.p)
    assert (repeated.n, repeated.clusters) == (400, 20)
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high))
    assert compare_scores(np.repeat(first, 20), np.repeat(second, 20)).p < repeated.p / 10


def test_few_authors_are_compared_by_every_flip_of_their_signs():
    first, second = discordant(40, 10, 0)
    found = compare_scores(first, second, [n % 5 for n in range(50)])
    assert (found.p, found.method) == (2 / 2**5, "sign-flips")
    alone = compare_scores([0.5], [0.2])
    assert (alone.p, alone.low, alone.high) == (1, -1, 1)


def test_sign_flips_of_single_examples_are_mcnemars_test():
    for wins, losses in product(range(5), range(5)):
        if wins + losses:
            first, second = discordant(wins, losses, 0)
            flips = compare_scores(first, second, range(wins + losses))
            assert flips.p == pytest.approx(compare_scores(first, second).p)


def test_an_equal_gain_everywhere_is_as_sure_as_flips_of_coins_allow():
    assert compare_scores([0.75] * 12, [0.5] * 12).p == 2 / 2**12
    same = compare_scores([0.75] * 12, [0.75] * 12)
    assert (same.p, same.value) == (1, 0)
    # As Bonett and Price would say of twelve examples that neither has right alone.
    assert same.high == -same.low == pytest.approx(1.959964 * sqrt(2) / 14)


@pytest.mark.parametrize(("first", "second"), [([], []), ([1], [1, 0])])
def test_only_the_same_examples_are_compared(first, second):
    with pytest.raises(ValueError, match="same examples"):
        compare_scores(first, second)


def test_corrections_agree_with_statsmodels():
    order = np.random.default_rng(0).permutation(len(PS))
    mixed = [PS[n] for n in order]
    assert adjust_by_holm(mixed) == pytest.approx([HOLM[n] for n in order])
    assert adjust_by_benjamini_hochberg(mixed) == pytest.approx([BH[n] for n in order])
    assert adjust_by_holm([]) == adjust_by_benjamini_hochberg([]) == []


chances = st.lists(st.floats(0, 1), min_size=1, max_size=20)


@given(chances)
def test_holm_rejects_one_after_the_other(ps):
    sure, left = set(), sorted(range(len(ps)), key=ps.__getitem__)
    while left and ps[left[0]] * len(left) <= 0.05:
        sure.add(left.pop(0))
    assert {n for n, p in enumerate(adjust_by_holm(ps)) if p <= 0.05} == sure


@given(chances)
def test_benjamini_hochberg_agrees_with_scipy(ps):
    assert adjust_by_benjamini_hochberg(ps) == pytest.approx(false_discovery_control(ps))
    both = zip(ps, adjust_by_benjamini_hochberg(ps), adjust_by_holm(ps), strict=True)
    assert all(p <= one <= other for p, one, other in both)


def test_shared_ranks_are_marked():
    assert label_ranks([1, 2, 2, 4]) == ["1", "2=", "2=", "4"]


def power_of_mcnemar(n: int, split: float, gap: float) -> float:
    """The chance that the normal McNemar test says p ≤ 0.05, over all tables of n examples."""
    changed = np.arange(1, n + 1)
    wins = np.arange(n + 1)
    share = binom.pmf(wins[:, None], changed, (split + gap) / (2 * split))
    extreme = np.abs(2 * wins[:, None] - changed) > 1.959964 * np.sqrt(changed)
    return float(((share * extreme).sum(axis=0) * binom.pmf(changed, n, split)).sum())


@pytest.mark.parametrize(("n", "split"), [(200, 0.3), (1000, 0.1), (1000, 0.4), (600, 0.2)])
def test_what_is_detectable_is_detected_as_often_as_promised(n, split):
    least = compute_min_detectable(n, 0.7, split)
    assert power_of_mcnemar(n, split, least) == pytest.approx(0.8, abs=0.02)
    half = compute_min_detectable(n, 0.7, split, power=0.5)
    assert power_of_mcnemar(n, split, half) == pytest.approx(0.5, abs=0.03)


def test_the_detectable_difference_solves_connors_formula():
    """n = (z_α √ψ + z_β √(ψ − δ²))² ÷ δ²."""
    split = 2 * 0.8 * 0.2
    least = compute_min_detectable(1000, 0.8)
    asked = (1.959964 * sqrt(split) + 0.841621 * sqrt(split - least**2)) ** 2 / least**2
    assert asked == pytest.approx(1000, rel=1e-5)
    assert least == pytest.approx(0.0501, abs=1e-4)


def test_too_few_or_too_equal_show_nothing():
    assert compute_min_detectable(3, 0.5) is None
    assert compute_min_detectable(1000, 0.9, 0.005) is None
    assert compute_min_detectable(1000, 1.0) is None


@given(st.integers(20, 10_000), st.floats(0.05, 0.5))
def test_more_examples_show_less(n, split):
    less, more = compute_min_detectable(n, 0.5, split), compute_min_detectable(2 * n, 0.5, split)
    assert less is None or more < less <= split
