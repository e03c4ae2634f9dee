"""Agreement against published examples, independent formulas and the shared files."""

import gzip
import json
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from validation.rates.agreement import (
    compute_fleiss_kappa,
    compute_krippendorff_alpha,
    compute_reliabilities,
    encode_votes,
)
from validation.rates.rates import Undefined, compute_wilson_interval

# Ten subjects, five categories, fourteen raters: the worked example of Fleiss' kappa, 0.210.
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
# Krippendorff 2011, example C: four observers, twelve units, missing values; nominal 0.743.
KRIPPENDORFF = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")

votes_of_few = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["p", "q", "r", None]), st.sampled_from("AB")),
    max_size=40,
)


def krippendorff_table():
    votes = [
        (unit, observer, label)
        for observer, row in enumerate(KRIPPENDORFF)
        for unit, label in enumerate(row)
        if label != "."
    ]
    return encode_votes(votes).build_table()


def pairwise_alpha(items):
    """Krippendorff's alpha from its definition: disagreeing pairs, observed over expected."""
    units = [unit for unit in items if len(unit) > 1]
    values = [value for unit in units for value in unit]
    observed = sum(
        sum(a != b for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units
    ) / len(values)
    n = len(values)
    expected = sum(a != b for a, b in permutations(values, 2)) / (n * (n - 1))
    return 1 - observed / expected if expected else None


def test_fleiss_example():
    assert compute_fleiss_kappa(FLEISS) == pytest.approx(0.209931, abs=5e-7)


def test_krippendorffs_example():
    assert compute_krippendorff_alpha(krippendorff_table()) == pytest.approx(0.743421, abs=5e-7)


@given(st.lists(st.lists(st.sampled_from("ABC"), min_size=1, max_size=4), max_size=8))
def test_alpha_is_its_definition(items):
    votes = [(number, None, label) for number, unit in enumerate(items) for label in unit]
    found = compute_krippendorff_alpha(encode_votes(votes).build_table())
    if any(len(unit) > 1 for unit in items) and (expected := pairwise_alpha(items)) is not None:
        assert found == pytest.approx(expected)
    else:
        assert isinstance(found, Undefined)


def test_kappa_of_two_votes_each_is_scotts_pi_near_cohens():
    """With labels equally frequent for both people, Fleiss' and Cohen's kappa are the same."""
    first, second = list("AABBCCAABB"), list("ABBBCCAABA")
    votes = [(i, p, row[i]) for p, row in enumerate((first, second)) for i in range(10)]
    expected = cohen_kappa_score(first, second)
    assert compute_fleiss_kappa(encode_votes(votes).build_table()) == pytest.approx(expected)


def test_kappa_of_unequal_numbers_of_votes():
    """By hand: agreements 1, 1/3 and 0; shares 4/7 and 3/7; the single vote is left out."""
    table = [[2, 0], [1, 2], [1, 1], [0, 1]]
    by_chance = (4 / 7) ** 2 + (3 / 7) ** 2
    expected = ((1 + 1 / 3 + 0) / 3 - by_chance) / (1 - by_chance)
    assert compute_fleiss_kappa(table) == pytest.approx(expected)


@pytest.mark.parametrize("statistic", [compute_fleiss_kappa, compute_krippendorff_alpha])
def test_weights_are_repeated_rows(statistic):
    table, weights = [[3, 0], [1, 2], [0, 3]], [4, 2, 1]
    repeated = np.repeat(table, weights, axis=0)
    assert statistic(table, weights) == pytest.approx(statistic(repeated))


@pytest.mark.parametrize("statistic", [compute_fleiss_kappa, compute_krippendorff_alpha])
@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (np.zeros((0, 0)), "two votes"),
        ([[1, 0], [0, 1]], "two votes"),
        ([[3, 0], [2, 0]], "same label"),
    ],
)
def test_what_cannot_be_computed_says_why(statistic, table, reason):
    assert reason in statistic(table).reason


def test_a_table_has_rows_and_columns():
    with pytest.raises(ValueError, match="row"):
        compute_fleiss_kappa([1, 2])


def naive_reliability(votes, who):
    """Agreement and chance of one validator by plain loops over all votes."""
    shares, labels = [], []
    for item in {i for i, _, _ in votes}:
        mine = [label for i, v, label in votes if (i, v) == (item, who)]
        others = [label for i, v, label in votes if i == item and v != who]
        if mine and others:
            shares.append(np.mean([m == o for m in mine for o in others]))
            labels.append(mine)
    left = [label for _, v, label in votes if v != who]
    chance = np.mean([np.mean([left.count(m) for m in mine]) for mine in labels]) / len(left)
    return len(shares), np.mean(shares), chance


@given(votes_of_few)
def test_reliability_is_agreement_with_the_others(votes):
    found = compute_reliabilities(encode_votes(votes))
    sharing = {v for i, v, _ in votes if v and any(j == i and w != v for j, w, _ in votes)} | {
        v for (i, v, _), (j, w, _) in combinations(votes, 2) if v and i == j and w is None
    }
    assert set(found) == sharing
    for who, reliability in found.items():
        items, agreement, chance = naive_reliability(votes, who)
        assert reliability.items == items
        assert reliability.agreement.value == pytest.approx(agreement)
        assert reliability.chance_agreement == pytest.approx(chance)
        assert reliability.agreement.low == pytest.approx(
            compute_wilson_interval(agreement * items, items)[0]
        )
        if isinstance(reliability.kappa, Undefined):
            assert chance == pytest.approx(1)
        else:
            assert reliability.kappa == pytest.approx((agreement - chance) / (1 - chance))


def test_who_always_says_the_same_is_no_better_than_chance():
    votes = []
    for item, truth in enumerate("ABC" * 20):
        votes += [(item, "good", truth), (item, "also good", truth), (item, "lazy", "A")]
    found = compute_reliabilities(encode_votes(votes))
    assert found["lazy"].kappa == pytest.approx(0)
    assert found["good"].kappa > 0.4
    assert found["lazy"].items == 60
    assert compute_reliabilities(encode_votes([])) == {}


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "kappa", "validators"),
    [
        ("r1-dev", 0.615758, 1280),
        ("r1-test", 0.614928, 1264),
        ("r2-dev", 0.681024, 244),
        ("r2-test", 0.667438, 240),
        ("sst-dev", None, 103),
    ],
)
def test_dynasents_published_agreement(data, name, kappa, validators):
    lines = gzip.decompress((data / f"dynasent-{name}.jsonl.gz").read_bytes()).splitlines()
    votes = encode_votes(
        (row["uid"], vote["worker"], vote["label"])
        for row in map(json.loads, lines)
        for vote in row["validations"]
    )
    assert len(votes.validators) == validators
    table = votes.build_table()
    if kappa:
        assert compute_fleiss_kappa(table) == pytest.approx(kappa, abs=5e-7)
    assert compute_krippendorff_alpha(table) == pytest.approx(compute_fleiss_kappa(table), abs=2e-4)
