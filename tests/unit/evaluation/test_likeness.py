"""Near-copies are found, and models that know nothing of each other are not taken for copies."""

import numpy as np
import pytest

from evaluation.scoring.likeness import Answers, Likeness, measure_likeness

PAIRS = 50


def drawn(rng, gold, accuracy, labels):
    """A model that is right as often, on examples of chance; its errors are any other label."""
    other = (gold + rng.integers(1, labels, len(gold))) % labels
    codes = np.where(rng.random(len(gold)) < accuracy, gold, other)
    return Answers(codes, codes == gold)


def changed(rng, gold, model, share, labels):
    """A copy with a share of its answers replaced by others."""
    codes = model.codes.copy()
    places = rng.choice(len(codes), round(share * len(codes)), replace=False)
    codes[places] = (codes[places] + rng.integers(1, labels, len(places))) % labels
    return Answers(codes, codes == gold)


SIZES = [
    (200, 2, 0.8),
    (200, 2, 0.5),
    (200, 3, 0.6),
    (1000, 2, 0.95),
    (1000, 3, 0.9),
    (1000, 3, 0.34),
    (5000, 2, 0.97),
]


@pytest.mark.parametrize(("n", "labels", "accuracy"), SIZES)
def test_independent_models_are_not_flagged_and_copies_are(n, labels, accuracy):
    rng = np.random.default_rng([n, labels, int(100 * accuracy)])
    flagged, found = 0, 0
    for _ in range(PAIRS):
        gold = rng.integers(0, labels, n)
        first, second = (drawn(rng, gold, accuracy, labels) for _ in range(2))
        flagged += measure_likeness(gold, first, second).is_near_copy
        copy = changed(rng, gold, first, 0.02, labels)
        found += measure_likeness(gold, first, copy).is_near_copy
    assert (flagged, found) == (0, PAIRS)


@pytest.mark.parametrize("accuracy", [0.7, 0.9])
def test_models_that_find_the_same_examples_hard_are_not_flagged(accuracy):
    """Real models share what is difficult: the chance of each example varies by it."""
    rng, flagged = np.random.default_rng(7), 0
    for _ in range(PAIRS):
        gold = rng.integers(0, 2, 1000)
        easy = rng.beta(2 * accuracy, 2 * (1 - accuracy), 1000)
        first, second = (drawn(rng, gold, easy, 2) for _ in range(2))
        flagged += measure_likeness(gold, first, second).is_near_copy
    assert flagged == 0


def test_what_is_expected_takes_in_a_liking_for_a_label():
    """Two models that nearly always say 0 agree, and that is expected of them."""
    rng = np.random.default_rng(3)
    gold = rng.integers(0, 2, 2000)
    models = []
    for _ in range(2):
        codes = (rng.random(2000) < 0.1).astype(int)
        models.append(Answers(codes, codes == gold))
    found = measure_likeness(gold, *models)
    assert found.equal == pytest.approx(found.expected, abs=4 * found.error)
    assert not found.is_near_copy


def test_the_numbers_of_a_pair():
    gold = np.array([0, 0, 0, 0, 1, 1])
    first, second = np.array([0, 0, 1, 1, 1, 0]), np.array([0, 1, 1, 0, 1, 0])
    found = measure_likeness(gold, Answers(first, first == gold), Answers(second, second == gold))
    assert (found.n, found.equal, found.both_wrong, found.equal_wrong) == (6, 4, 2, 2)
    assert found.expected == pytest.approx(4 * 0.5 + 2 * 0.5)
    assert found.error == pytest.approx((6 * 0.25) ** 0.5)


@pytest.mark.parametrize(
    ("differs", "both_wrong", "equal_wrong", "expected", "flagged"),
    [
        (10, 10, 10, 50, True),
        (11, 10, 10, 50, False),  # more differs than is shared
        (2, 5, 5, 50, False),  # too few errors
        (6, 10, 7, 50, False),  # other errors
        (10, 10, 10, 88, False),  # as expected
    ],
)
def test_each_condition_counts(differs, both_wrong, equal_wrong, expected, flagged):
    found = Likeness(100, 100 - differs, expected, 1.0, both_wrong, equal_wrong)
    assert found.is_near_copy == flagged


def test_no_examples_are_no_copy():
    none = Answers(np.array([], dtype=int), np.array([], dtype=bool))
    assert not measure_likeness(np.array([], dtype=int), none, none).is_near_copy
