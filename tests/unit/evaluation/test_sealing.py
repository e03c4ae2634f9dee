"""How much scores on a sealed set tell: never more than the bound says."""

from itertools import product
from math import log2, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.test_sets.sealing import (
    BITS_PER_EXAMPLE,
    Disclosure,
    compute_interval,
    count_steps,
    round_to_step,
)

SIZES = st.integers(1, 1_000_000)
METRICS = st.lists(
    st.sampled_from(["accuracy", "macro_f1", "matthews_correlation"]), min_size=1, unique=True
)


@given(SIZES)
def test_a_step_is_a_standard_error_of_a_share_or_a_little_more(size):
    least = 1 / (2 * sqrt(size))
    assert least <= 1 / count_steps(size) + 1e-12
    assert 1 / count_steps(size) <= 2 * least


@given(st.floats(-1, 1), SIZES)
def test_rounding_moves_a_score_by_half_a_step_at_most(value, size):
    assert abs(round_to_step(value, size) - value) <= 0.5 / count_steps(size) + 1e-9


@given(st.floats(0, 1), SIZES)
def test_the_interval_holds_the_value_and_depends_on_what_is_shown_alone(value, size):
    shown = round_to_step(value, size)
    low, high = compute_interval(shown, size, "accuracy")
    assert 0 <= low <= shown <= high <= 1
    assert compute_interval(round_to_step(shown, size), size, "accuracy") == (low, high)


@given(SIZES, METRICS)
def test_all_that_can_be_shown_fits_in_the_bits(size, metrics):
    values = 1
    for name in metrics:
        least = -1 if name == "matthews_correlation" else 0
        steps = count_steps(size)
        values *= len(range(least * steps, steps + 1)) + 1  # and none at all
    shown = Disclosure(size, metrics)
    assert shown.bits == pytest.approx(log2(values))
    assert shown.max_results >= 1
    assert shown.max_bits <= max(BITS_PER_EXAMPLE * size, shown.bits)


def test_what_the_pages_say():
    assert Disclosure(24, ["accuracy"]).max_results == 1
    assert Disclosure(1000, ["accuracy", "macro_f1"]).max_results == 20
    assert Disclosure(1000, ["squad_f1", "exact_match", "fairness"], side_runs=1).max_results == 7


def ask(labels, told, is_shown):
    """Somebody submits 34 files, each changed by what the results before it told; what they see.

    A file starts from the last one that was no worse, with the next answer changed.
    """
    best, most, seen = [0] * len(labels), -1.0, []
    for number in range(34):
        answers = list(best)
        if number:
            answers[(number - 1) % len(labels)] ^= 1
        if not is_shown(number):
            seen.append(None)
            continue
        score = told(sum(map(int.__eq__, answers, labels)) / len(labels))
        seen.append(score)
        if score >= most:
            best, most = answers, score
    return tuple(seen), tuple(best)


def test_the_attack_that_read_all_labels_learns_no_more_than_the_bound():
    """Over all labels that ten examples can have: how many can be told apart."""
    every, size = [*product((0, 1), repeat=10)], 10
    exact = {ask(labels, lambda value: value, lambda number: True) for labels in every}
    assert len(exact) == len(every)  # each label is read out
    assert all(ask(one, lambda v: v, lambda n: True)[1] == one for one in every)
    shown = Disclosure(size, ["accuracy"])
    seen = {
        ask(
            labels,
            lambda value: round_to_step(value, size),
            lambda number: number < shown.max_results,
        )[0]
        for labels in every
    }
    assert log2(len(seen)) <= shown.max_bits < size / 3


@given(st.lists(st.integers(0, 2**24 - 1), min_size=1, max_size=300), st.integers(0, 2**16))
def test_whatever_is_asked_first_answers_are_few(all_labels, guess):
    """The first answer splits labels into no more parts than the bits of one result count."""
    size = 24
    shown = Disclosure(size, ["accuracy"])
    parts = {
        round_to_step((size - (labels ^ guess).bit_count()) / size, size) for labels in all_labels
    }
    assert len(parts) <= 2**shown.bits
