"""How far a judge agrees with people: κ as scikit-learn's, an interval by author, the split."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from evaluation.judges.llm_judges.agreement import (
    MIN_EXAMPLES,
    JudgedPair,
    assign_split,
    compute_agreement,
)

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.booleans(), st.booleans()), max_size=60)


@given(PAIRS)
def test_kappa_is_scikit_learns_and_lies_in_its_interval(pairs):
    found = compute_agreement(JudgedPair(*pair) for pair in pairs)
    assert found.n == len(pairs) == sum(found[2:6])
    people, model = [pair[1] for pair in pairs], [pair[2] for pair in pairs]
    if not pairs or len({*people, *model}) == 1:
        assert found.kappa is None
        return
    assert math.isclose(found.kappa, cohen_kappa_score(people, model), abs_tol=1e-9)
    assert -1 <= found.low <= found.kappa <= found.high <= 1


def test_the_confusion_tells_who_said_what():
    cells = [(True, True)] * 4 + [(True, False)] * 3 + [(False, True)] * 2 + [(False, False)]
    found = compute_agreement(JudgedPair(None, *cell) for cell in cells)
    assert found[2:6] == (4, 3, 2, 1)
    assert found.authors == 10  # an unknown author is somebody else each time


def test_examples_of_few_authors_show_less():
    """Six of ten authors are always judged as people do, four never: each is as one case."""
    pairs = [
        (author, bool(n % 2), bool(n % 2) == (author < 6))
        for author in range(10)
        for n in range(10)
    ]
    together = compute_agreement(JudgedPair(*pair) for pair in pairs)
    apart = compute_agreement(JudgedPair(number, *pair[1:]) for number, pair in enumerate(pairs))
    assert together.kappa == apart.kappa
    assert together.high - together.low > 2 * (apart.high - apart.low)


def test_full_agreement_is_not_certain():
    found = compute_agreement(JudgedPair(n, n % 2 == 0, n % 2 == 0) for n in range(60))
    assert (found.kappa, found.high) == (1, 1)
    assert 0.8 < found.low < 1


@pytest.mark.parametrize(("n", "is_calibrated"), [(MIN_EXAMPLES - 1, False), (MIN_EXAMPLES, True)])
def test_fewer_than_fifty_examples_are_no_calibration(n, is_calibrated):
    chance = random.Random(0)
    pairs = [
        JudgedPair(number, chance.random() < 0.5, chance.random() < 0.5) for number in range(n)
    ]
    assert compute_agreement(pairs).is_calibrated == is_calibrated
    alike = [pair._replace(by_people=True, by_model=True) for pair in pairs]
    assert not compute_agreement(alike).is_calibrated


def test_the_split_is_by_author_stable_and_in_halves():
    parts = [assign_split(1, author, "secret") for author in range(1000)]
    assert parts == [assign_split(1, author, "secret") for author in range(1000)]
    assert 430 < parts.count("tune") < 570
    assert parts != [assign_split(1, author, "another") for author in range(1000)]
    assert parts != [assign_split(2, author, "secret") for author in range(1000)]
