"""Slices are found where a model has a weak spot, and seldom where it has none."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynabench.failures.rules.records import Try
from dynabench.failures.rules.slices import (
    TOO_FEW_AUTHORS,
    TOO_FEW_ERRORS,
    drop_near_copies,
    find_slices,
)
from dynabench.failures.rules.word_vectors import build_word_vectors, find_centres
from tests.support.written_tries import SUBJECTS, write_tries

WEAK_WORDS = set(SUBJECTS["food"])


def test_a_weak_subject_is_found_with_its_words():
    search = find_slices(write_tries(3, weak_subject="food", weak_rate=0.7))
    clearest = search.slices[0]
    assert clearest.is_clear
    assert WEAK_WORDS & set(clearest.words)
    assert clearest.error_rate.low <= 0.7 <= clearest.error_rate.high
    assert clearest.error_rate.value > clearest.rest_rate.value


def test_its_examples_are_errors_of_the_subject():
    tries = write_tries(3, weak_subject="food", weak_rate=0.7)
    clearest = find_slices(tries).slices[0]
    examples = [tries[key] for key in clearest.examples]
    assert all(one.is_error for one in examples)
    about_food = [one for one in examples if WEAK_WORDS & one.words]
    assert len(about_food) > len(examples) / 2


def test_a_weak_label_is_found_by_its_name():
    tries = [
        replace(one, is_error=one.key % 2 == 0 if one.values["label"] == "positive" else False)
        for one in write_tries(4)
    ]
    clearest = find_slices(tries).slices[0]
    assert (clearest.name, clearest.value, clearest.words) == ("label", "positive", ())
    assert clearest.is_clear


def test_without_a_weak_spot_few_searches_call_one_clear():
    # At 5 %, five or more of 20 happen once in 400 runs.
    false_alarms = 0
    for seed in range(20):
        search = find_slices(write_tries(seed, per_author=12))
        false_alarms += any(one.is_clear for one in search.slices)
    assert false_alarms <= 4


def test_a_skilled_authors_favourite_subject_is_no_weak_spot():
    tries = []
    for author in range(12):
        is_skilled = author < 6
        subject = "food" if is_skilled else "sport"
        for one in write_tries(author, authors=1, per_author=20):
            words = one.words - set().union(*SUBJECTS.values()) | set(SUBJECTS[subject][:3])
            is_error = len(tries) % 10 < (8 if is_skilled else 1)
            tries.append(Try(len(tries), author, frozenset(words), is_error))
    assert not any(one.is_clear for one in find_slices(tries).slices)


@pytest.mark.parametrize(
    ("tries", "reason"),
    [
        ([], TOO_FEW_AUTHORS),
        (write_tries(1, authors=5, per_author=60, error_rate=0.5), TOO_FEW_AUTHORS),
        (write_tries(1, error_rate=0.01), TOO_FEW_ERRORS),
    ],
)
def test_too_few_texts_are_not_searched(tries, reason):
    search = find_slices(tries)
    assert (search.slices, search.reason) == ((), reason)


def test_only_the_first_of_an_authors_near_copies_counts():
    words = frozenset("abcdefghij")
    first = Try(1, "ann", words, is_error=False)
    retry = Try(2, "ann", words - {"a"} | {"z"}, is_error=False)
    last = Try(3, "ann", words - {"a"}, is_error=True)
    by_another = Try(4, "bob", words, is_error=True)
    assert drop_near_copies([first, retry, last, by_another]) == [first, by_another]


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 20))
def test_p_values_and_counts_are_possible(seed, per_author):
    tries = write_tries(seed, authors=8, per_author=per_author, error_rate=0.5)
    search = find_slices(tries, seed)
    assert 0 <= search.errors <= search.tries <= len(tries)
    for one in search.slices:
        assert 0 < one.p_value <= 1
        assert one.error_rate.low <= one.error_rate.value <= one.error_rate.high
        # The second half has no more texts than there are.
        assert one.error_rate.n + one.rest_rate.n <= search.tries
        assert len(one.examples) == round(one.error_rate.value * one.error_rate.n)
    assert find_slices(tries, seed) == search


@pytest.mark.parametrize("texts", [[], [frozenset()] * 9, [frozenset({"a", "b"})] * 9])
def test_texts_that_no_word_tells_apart_have_no_groups(texts):
    vectors = build_word_vectors(texts, 1)
    assert vectors.shape[0] == len(texts)
    assert len(find_centres(vectors, 3, 1)) <= 1


def test_vectors_of_texts_about_one_subject_are_nearer():
    texts = [one.words for one in write_tries(1, authors=4, per_author=50)]
    vectors = build_word_vectors(texts, 1)
    subjects = [
        next(name for name, words in SUBJECTS.items() if set(words) & text) for text in texts
    ]
    cosines = vectors @ vectors.T
    is_same = np.array([[first == second for second in subjects] for first in subjects])
    assert cosines[is_same].mean() > cosines[~is_same].mean() + 0.1
