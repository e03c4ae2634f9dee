"""Rates with intervals: published numbers, hand-made cases, and coverage by simulation."""

import subprocess
import sys
from collections import Counter
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from validation.rates.rates import (
    MIN_DECIDED,
    CollectedCounts,
    ComparedCounts,
    Rate,
    Undefined,
    compare_human_and_model,
    compare_votes,
    compute_clopper_pearson_interval,
    compute_clustered_rate,
    compute_clustered_ratio,
    compute_newcombe_interval,
    compute_rate,
    compute_round_rates,
    compute_share_by_author,
    compute_wilson_interval,
    iter_others_choices,
)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [  # Newcombe 1998, table I, method 3; and the design's 53 of 200
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (53, 200, 0.2087, 0.3302),
    ],
)
def test_wilson_of_published_tables(successes, n, low, high):
    assert compute_wilson_interval(successes, n) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_symmetric_and_holds_its_value(case):
    successes, n = case
    low, high = compute_wilson_interval(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    assert compute_wilson_interval(n - successes, n) == pytest.approx((1 - high, 1 - low))
    wide = compute_wilson_interval(successes, n, 0.99)
    assert wide[0] <= low + 1e-12
    assert high <= wide[1] + 1e-12


@pytest.mark.parametrize("case", [(1, 0), (2, 1), (-1, 3), (0, 0)])
def test_no_share_is_refused(case):
    with pytest.raises(ValueError, match="no share"):
        compute_wilson_interval(*case)


def test_rates_without_a_denominator_say_why():
    assert compute_rate(0, 0, "no votes") == Undefined("no votes")
    assert compute_clustered_rate([], "no votes") == Undefined("no votes")
    assert compute_clustered_rate([(0, 0)], "no votes") == Undefined("no votes")


def test_an_example_each_is_wilson():
    assert compute_clustered_rate([(1, 1)] * 3 + [(0, 1)] * 7 + [(0, 0)]) == compute_rate(3, 10)


def many_authors():
    draw = np.random.default_rng(5)
    sizes = draw.integers(1, 40, 60)
    return [(int(draw.binomial(m, draw.beta(1, 3))), int(m)) for m in sizes]


def test_alike_examples_of_an_author_widen_the_interval():
    authors = many_authors()
    found = compute_clustered_rate(authors)
    assert (found.method, found.clusters) == ("korn-graubard", 60)
    plain = compute_rate(sum(x for x, _ in authors), found.n)
    assert found.value == plain.value
    assert found.low < plain.low < plain.high < found.high
    assert compute_clustered_rate(authors[::-1]) == found


def test_examples_of_one_author_are_counted_together_and_those_of_nobody_apart():
    so = Counter({("a", True): 3, ("a", False): 1, ("b", False): 2, (None, True): 2})
    assert compute_share_by_author(so.items()) == compute_clustered_rate(
        [(1, 1), (1, 1), (3, 4), (0, 2)]
    )
    assert compute_share_by_author([], "no votes") == Undefined("no votes")


def test_a_ratio_of_clusters_is_cochrans():
    found = compute_clustered_ratio([(1, 4), (3, 4), (-1, 2)])  # 3/10; residuals -0.2, 1.8, -1.6
    assert found.value == pytest.approx(0.3)
    assert found.standard_error == pytest.approx(sqrt((0.04 + 3.24 + 2.56) * 3 / 2) / 10)
    assert found.degrees_of_freedom == pytest.approx(100 / 36 - 1)
    assert found.half_width == pytest.approx(
        stats.t.ppf(0.975, found.degrees_of_freedom) * found.standard_error
    )


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [  # Newcombe 1998, table I, method 5 (Clopper and Pearson, exact)
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_clopper_pearson_of_published_tables(successes, n, low, high):
    assert compute_clopper_pearson_interval(successes, n) == pytest.approx((low, high), abs=1e-4)
    assert compute_clopper_pearson_interval(n - successes, n) == pytest.approx(
        (1 - high, 1 - low), abs=1e-4
    )


@pytest.mark.parametrize(
    ("authors", "effective", "student"),
    [  # Student's t for 95 %: 12.706 with one degree of freedom, 4.303 with two, 2.201 with eleven
        ([(30, 100)], 1, 12.706),  # one author is one case
        ([(20, 20), (0, 20)], 1, 12.706),  # all or nothing: two cases, less one for the mean
        ([(0, 10)] * 3, 3, 4.303),  # shares of 0 and 1 show no variance: the careful extreme
        ([(5, 5)] * 12, 12, 2.201),
        ([(5, 10), (5, 10)], 20, 12.706),  # no variance between authors: every example counts
        ([(0, 30), (0, 10), (0, 10)], 50**2 / 1100, 9.184),  # 2.27 authors of one size
    ],
)
def test_few_authors_count_as_fewer_cases(authors, effective, student):
    found = compute_clustered_rate(authors)
    share, n = found.value, sum(m for _, m in authors)
    effective *= (1.95996 / student) ** 2
    expected = compute_clopper_pearson_interval(share * effective, effective)
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-3)
    assert (found.method, found.n, found.clusters) == ("korn-graubard", n, len(authors))
    assert found.has_few_authors == (len(authors) < 10)


def test_cases_that_stand_for_themselves_are_not_few_authors():
    assert not compute_rate(1, 2).has_few_authors


def test_round_rates_have_one_definition():
    ann = CollectedCounts(10, 10, 6, 10, 8, 6, 5, 3)
    bob = CollectedCounts(10, 10, 2, 10, 4, 4, 3, 1)
    found = compute_round_rates([ann, bob])
    assert {name: (r.value, r.n) for name, r in found.items()} == {
        "mer": (8 / 20, 20),
        "vmer": (4 / 20, 20),
        "fooled_of_decided": (4 / 10, 10),
        "verified_of_judged": (8 / 12, 12),
    }
    assert found == compute_round_rates([bob, ann])
    assert all(isinstance(r, Rate) and r.low <= r.value <= r.high for r in found.values())


@pytest.mark.parametrize(
    ("counts", "name", "reason"),
    [
        ([], "vmer", "no examples"),
        ([CollectedCounts(5)], "mer", "outcome"),
        ([CollectedCounts(5, judged=5, decided=5)], "vmer", "no model"),
        ([CollectedCounts(5, with_model=5)], "vmer", "judged"),
        ([CollectedCounts(5, with_model=5)], "verified_of_judged", "judged"),
        ([CollectedCounts(5, with_model=5, judged=2)], "fooled_of_decided", "consensus"),
    ],
)
def test_what_cannot_be_computed_says_why(counts, name, reason):
    assert reason in compute_round_rates(counts)[name].reason


@pytest.mark.parametrize("decided", [0, MIN_DECIDED - 1, MIN_DECIDED])
def test_a_vmer_waits_for_decisions(decided):
    """Else it would be 0 % while nothing is decided, and 100 % after the first one."""
    authors = [CollectedCounts(1, with_model=1, judged=1, decided=n < decided) for n in range(20)]
    rates = compute_round_rates(authors)
    for name in ("vmer", "fooled_of_decided"):
        assert isinstance(rates[name], Undefined) == (decided < MIN_DECIDED)
    assert rates["verified_of_judged"].n == 20


@pytest.mark.parametrize(("votes", "is_known"), [(2, False), (9, False), (10, True)])
def test_the_gap_waits_for_votes(votes, is_known):
    """Two votes would make a gap of −50 points."""
    found = compare_human_and_model([ComparedCounts(1, n % 2, 1) for n in range(votes)])
    assert {isinstance(rate, Rate) for rate in found.values()} == {is_known}


def test_importing_the_rules_loads_no_numpy():
    names = ["validation.consensus.dawid_skene.fitting", "validation.consensus.consensus"]
    names += ["validation.rates.agreement", "validation.rates.rates"]
    names += ["validation.statistics.definitions", "annotation.rules.near_duplicates"]
    code = f"import importlib, sys\nfor n in {names}: importlib.import_module(n)\n"
    code += "print('numpy' in sys.modules, 'django' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ((3, 0, 0), [(0, 3, 0)]),
        ((4, 1, 0), [(0, 4, 0), (1, 1, 0)]),
        ((2, 1, 0), [(1, 1, 0)]),  # of the two, the others are divided
        ((1, 1, 0), [(0, 1, 1), (1, 1, 0)]),
        ((1, 1, 1), []),
        ((3, 2, 0), [(1, 2, 0)]),
        ((1, 0), []),
        ((0, 0), []),
        ((), []),
    ],
)
def test_what_the_others_say(counts, found):
    assert list(iter_others_choices(counts)) == found


@given(st.lists(st.integers(0, 4), max_size=5))
def test_nobody_agrees_with_themselves(counts):
    for choice, votes, others in iter_others_choices(counts):
        assert votes == counts[choice]
        left = counts[others] - (choice == others)
        assert left > 0
        for n, count in enumerate(counts):
            assert n == others or count - (n == choice) < left


def test_votes_and_target_are_held_against_the_same():
    assert compare_votes((4, 1, 0), [True, False, False]) == ComparedCounts(5, 4, 5)
    assert compare_votes((4, 1, 0), [False, True, False]) == ComparedCounts(5, 4, 0)
    assert (
        compare_votes((1, 0, 4), [True, True, None]) == ComparedCounts()
    )  # the others cannot tell
    assert compare_votes((0, 4, 1), [None, True, None]) == ComparedCounts(5, 4, 5)


def test_a_target_that_is_one_more_person_has_no_gap():
    draw = np.random.default_rng(3)
    authors = []
    for _ in range(1500):
        *votes, said = draw.choice(3, 6, p=(0.8, 0.15, 0.05)).tolist()
        counts = [votes.count(n) for n in range(3)]
        authors.append(compare_votes(counts, [said == n for n in range(3)]))
    found = compare_human_and_model(authors)
    assert found["human_accuracy"].value == pytest.approx(0.8, abs=0.03)
    assert found["human_model_gap"].low < 0 < found["human_model_gap"].high
    assert found["human_model_gap"].high < 0.05


def test_the_gap_and_its_interval():
    draw = np.random.default_rng(7)
    authors = [ComparedCounts(20, *map(int, draw.binomial(20, (0.9, 0.4)))) for _ in range(30)]
    found = compare_human_and_model(authors)
    human, model, gap = found.values()
    assert list(found) == ["human_accuracy", "model_accuracy", "human_model_gap"]
    assert gap.value == pytest.approx(human.value - model.value)
    assert (gap.n, gap.method, gap.clusters) == (600, "student-by-author", 30)
    differences = np.array([(a.human - a.model) / 20 for a in authors])
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (gap.low, gap.high) == pytest.approx((expected.low, expected.high))
    assert compare_human_and_model([*authors[::-1], ComparedCounts()]) == found


def test_the_gap_of_paired_answers_is_narrower_than_two_intervals():
    authors = [ComparedCounts(10, n % 11, max(0, n % 11 - n % 2)) for n in range(40)]
    human, model, gap = compare_human_and_model(authors).values()
    assert gap.method == "student-by-author"
    low, high = compute_newcombe_interval(human, model)
    assert low < gap.low < gap.value < gap.high < high


@pytest.mark.parametrize(
    "authors",
    [
        [ComparedCounts(10, 9, 9), ComparedCounts(5, 2, 2)] * 4,
        [ComparedCounts(9, 6, 0), ComparedCounts(2, 2, 0)] * 9,
    ],
)
def test_the_gap_where_authors_do_not_differ(authors):
    human, model, gap = compare_human_and_model(authors).values()
    assert gap.method == "newcombe"
    # Newcombe 1998, method 10
    assert gap.value - gap.low == pytest.approx(
        ((human.value - human.low) ** 2 + (model.high - model.value) ** 2) ** 0.5
    )
    assert gap.low < gap.value < gap.high


def test_people_always_right_and_the_target_never():
    alone = [ComparedCounts(1, 1, 0)] * 10
    human, model, gap = compare_human_and_model(alone).values()
    assert (human.value, model.value, gap.value) == (1, 0, 1)
    assert gap.low == pytest.approx(1 - 2**0.5 * (1 - human.low))


def test_without_comparable_votes_there_is_no_gap():
    found = compare_human_and_model([ComparedCounts(), ComparedCounts()])
    assert all(value.reason for value in found.values())
