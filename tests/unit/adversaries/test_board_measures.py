"""The measures of the board of adversaries: their values, ends and intervals."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.adversaries.board_measures import (
    collect_content_words,
    compute_coverage,
    compute_novelty,
    compute_pass_chance,
    compute_per_catch,
)


@given(st.integers(1, 9), st.integers(0, 9), st.integers(1, 9))
def test_the_chance_of_a_catch_counts_all_choices_of_tries(tries, catches, k):
    catches = min(catches, tries)
    measured = compute_pass_chance(tries, catches, k)
    if tries < k:
        assert measured is None
        return
    chosen = list(combinations([number < catches for number in range(tries)], k))
    assert measured.value == pytest.approx(sum(map(any, chosen)) / len(chosen))
    assert 0 <= measured.low <= measured.value <= measured.high <= 1


def test_more_tries_are_more_likely_to_have_a_catch():
    values = [compute_pass_chance(50, 5, k).value for k in range(1, 30)]
    assert values == sorted(values)


@given(st.lists(st.text("abc ", min_size=1), min_size=10, max_size=14))
def test_novelty_lies_in_its_interval(texts):
    measured = compute_novelty(texts)
    assert 0 <= measured.low <= measured.value <= measured.high <= 1


def test_copies_are_not_novel():
    assert compute_novelty(["The soup was cold."] * 10).value == 0
    assert compute_novelty(["The soup was cold."] * 9) is None


def test_coverage_is_the_share_of_everybodys_words():
    texts = ["Slow service again", "The soup was cold"]
    all_words = collect_content_words(texts)
    assert all_words == {"slow", "service", "again", "soup", "cold"}
    assert compute_coverage(texts, all_words) == 1
    assert compute_coverage(texts[:1], all_words) == 0.6
    assert compute_coverage([], all_words) is None


def test_calls_per_catch_need_a_catch():
    assert compute_per_catch(9, 0) is None
    measured = compute_per_catch(100, 4)
    assert measured.low < measured.value == 25 < measured.high
